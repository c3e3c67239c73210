"""From images to tensors: samplers choose the images of a batch, inputs turn them into tensors."""
