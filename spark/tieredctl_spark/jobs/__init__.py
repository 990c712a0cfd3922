"""Programs for spark-submit. Each is one file that needs only the installed packages."""
