"""All pages about people and their courses, for the application to serve."""

from service.people import admin_pages, class_pages, courses, pages, token_pages

ROUTERS = (pages.router, courses.router, class_pages.router, token_pages.router, admin_pages.router)
