"""The pages of this package, for the application to serve."""

from service.dashboard import pages, submission_pages

ROUTERS = (pages.router, submission_pages.router)
