"""PyTorch Lightning on the cluster: what is there is in determined.lightning.experimental."""
