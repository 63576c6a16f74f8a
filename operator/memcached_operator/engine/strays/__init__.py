"""What has the labels of an object and affects its clients or its pods, but does not belong to it."""
