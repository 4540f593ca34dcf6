"""The quorum that agrees on the metadata log: Raft in the shape of KRaft, as a protocol machine."""
