"""Topics that Inkless keeps in object storage alone: its control plane, its objects, and the commands `diskless …`."""
