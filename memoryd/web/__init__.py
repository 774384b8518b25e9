"""The glass box: what memoryd holds, as one page in a browser of the same machine."""
