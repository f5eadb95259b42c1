"""The pages of this package, for the application to serve."""

from service.dashboard import by_hand, pages, submission_pages

ROUTERS = (pages.router, submission_pages.router, by_hand.router)
