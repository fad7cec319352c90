"""The protocols of the local server: answers, streams and errors in the words of each provider."""
