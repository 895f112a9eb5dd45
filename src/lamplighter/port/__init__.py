"""The port: the verbs every engine offers, what they promise, and the suite that proves it."""
