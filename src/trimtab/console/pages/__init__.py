"""One module a page: a frozen record of what it shows, and a function that makes it."""
