"""What rapt.torch, rapt.transformers and rapt.onnx are made of. Import those: nothing here is public by this name."""
