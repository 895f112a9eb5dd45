"""Stands between a program and its server: breaks the network, or pools connections.

`Link` (link.py) carries bytes and can lose answers, hang, refuse and change its target.
`Rotation` (rotation.py) is a transaction pooler that gives no two transactions in a row of a
client to the same server connection, and watches what they leave behind.

Both run in a thread of the process that makes them; any process may connect to their port.
"""
