"""The cut between learning and using: a trained network as a frozen one."""
