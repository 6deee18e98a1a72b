"""Prints the content of each TCP packet over IPv4 that an interface sees: source, destination, and the bytes in hex, one packet a line."""

import socket
import sys

ALL_PROTOCOLS = 3
ETHERNET = 14

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
wire.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    packet = wire.recv(65536)
    if packet[12:14] != b"\x08\x00" or packet[ETHERNET + 9] != socket.IPPROTO_TCP:
        continue
    ip = packet[ETHERNET : ETHERNET + int.from_bytes(packet[ETHERNET + 2 : ETHERNET + 4], "big")]
    tcp = ip[(ip[0] & 15) * 4 :]
    content = tcp[(tcp[12] >> 4) * 4 :]
    if not content:
        continue
    source = socket.inet_ntoa(ip[12:16]) + ":" + str(int.from_bytes(tcp[0:2], "big"))
    target = socket.inet_ntoa(ip[16:20]) + ":" + str(int.from_bytes(tcp[2:4], "big"))
    print(source, target, content.hex(), flush=True)
