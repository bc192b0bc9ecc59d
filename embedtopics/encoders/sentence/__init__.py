"""Encoders over transformer checkpoints, on ONNX Runtime or PyTorch."""
