"""What a release consists of: images, files, bills, provenance, signatures."""
