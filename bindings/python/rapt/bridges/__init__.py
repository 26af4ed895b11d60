"""The implementation of rapt.torch, rapt.transformers and rapt.onnx. Import those modules: the names in here are not
public."""
