"""Pages about a class: the answers of service/classroom and of reports go in, HTML with charts comes out."""
