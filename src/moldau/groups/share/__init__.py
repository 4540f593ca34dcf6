"""Share groups: members that read the same partitions side by side (KIP-932)."""
