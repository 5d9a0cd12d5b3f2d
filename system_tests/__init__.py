"""The embedded broker and `rolling-bounce`: live bounces, simulator, explorer, matrix, plan."""
