"""Parts that several of the package's modules share."""
