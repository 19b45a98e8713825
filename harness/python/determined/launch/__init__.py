"""Starting the ranks of a trial."""
