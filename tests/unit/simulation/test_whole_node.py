SETTINGS = {
    "node.id": "1", "process.roles": "broker,controller", "log.dirs": "/data",
    "listeners": "PLAINTEXT://:9092", "durability": "fsync",
}
