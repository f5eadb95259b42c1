"""The groups of commands that manage a database, a module for each; service/cli.py lists them."""
