"""The AppService controller: runs an image as a Deployment with a NodePort Service."""
