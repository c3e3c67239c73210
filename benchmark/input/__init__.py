"""From images to tensors: samplers say which images make a batch, inputs turn them into tensors."""
