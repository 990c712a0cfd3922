"""One self-contained page of what a command found: values -> HTML. Knows no command, finding or client; the only home
of Jinja2, which is loaded when a page is made."""
