/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real world for a NIC: Linux clock, memory, cables and a NIC thread.
 * verbs/ takes the provider; tests and benches open hosts of their own.
 */
#ifndef AQ_OS_H
#define AQ_OS_H

#include "core/nic_host.h"
#include "os_limits.h"

#define OS_STATS(X)                                                         \
	X(connects, "cables opened")                                        \
	X(accepts, "cables accepted")                                       \
	X(hangups, "cables whose peer is gone")                             \
	X(refused_version, "cables refused: other version")                 \
	X(refused_peer, "cables refused: another user's process")           \
	X(refused_hello, "cables refused: malformed introduction")          \
	X(refused_slot, "cables refused: the caller has another slot")      \
	X(refused_silent, "cables closed: no introduction came in time")    \
	X(reach_grants, "keys whose memory peers may reach")                \
	X(reach_revokes, "times that was taken back")                       \
	X(broken_rings, "cables closed: impossible ring contents")          \
	X(engine_sleeps, "times the NIC thread went to sleep")              \
	X(wakes_sent, "sleeping peers woken")                               \
	X(wakes_put_off, "wakes of one peer put off to the turn's end")     \
	X(dozes, "times a thread slept until a peer's next frame")          \
	X(rouses_sent, "dozing peers woken")                                \
	X(nudges_sent, "peers woken that had not read for too long")        \
	X(direct_maps, "memory of peers mapped")                            \
	X(direct_refusals, "mappings that a peer refused")                  \
	X(direct_grants, "mappings given to peers")                         \
	X(direct_denials, "mappings refused to peers")                      \
	X(direct_revokes, "mappings taken back")                            \
	X(udp_sends, "UDP sends, each of one or more packets")              \
	X(udp_receives, "UDP receives, each of one or more packets")        \
	X(udp_send_errors, "packets that a UDP send refused")               \
	X(udp_too_big, "packets larger than the way's MTU, in fragments")   \
	X(udp_handed_in, "connection requests handed to their listener")    \
	X(udp_forwarded, "packets passed on to another process")            \
	X(udp_hails, "hails answered")                                      \
	X(udp_steered, "times the kernel was told whose packets are whose") \
	X(udp_no_slot, "dropped: packet to a slot that nobody has")         \
	X(udp_forged, "dropped: packet with our own address as its source") \
	X(udp_short, "dropped: datagram shorter than a packet")             \
	X(udp_fault_drops, "dropped on purpose: nic.loss_ppm")              \
	X(raw_unresolved, "frames lost: neighbour not known yet")           \
	X(raw_send_errors, "frames that the interface refused")             \
	X(icrc_weak, "packets whose IP identification was inferred")

struct os_stats {
#define OS_STAT_FIELD(name, help) uint64_t name;
	OS_STATS(OS_STAT_FIELD)
#undef OS_STAT_FIELD
};

/* How to reach other processes. */
enum os_port {
	OS_PORT_AUTO,	/* cables on this host, UDP to others */
	OS_PORT_CABLE,	/* other hosts cannot be reached */
	OS_PORT_UDP,	/* also between processes of this host */
	OS_PORT_RAW,	/* frames on `interface`; cables on this host */
	OS_PORT_SWITCH, /* everything through the switch `interface` */
};

struct os_config {
	char rack[OS_RACK_NAME_MAX]; /* NICs see only NICs of their rack */
	/* IPv4 address of this host, or the last four bytes of its IPv6
	 * address; they name slots and make the MAC. */
	uint8_t address[4];
	uint8_t address6[16]; /* all zero: IPv4 */
	enum os_port port;
	char interface[16];	/* for OS_PORT_RAW; or the switch's name */
	uint32_t mtu;		/* payload of a packet; 0: the largest */
	uint32_t loss_ppm;	/* UDP packets dropped on purpose */
	uint32_t ring_bytes;	/* a power of two; 0: OS_RING_BYTES */
	uint32_t idle_turns;	/* before the NIC thread sleeps */
	bool watch_unmap;	/* registered memory: see unmap.h */
	const char *pcap_path;	/* NULL: no capture; "%p" is the pid */
	uint64_t *nic_counters; /* NULL: the NIC's own memory */
	struct os_stats *stats; /* NULL: the host's own memory */
};

/* Defaults: rack "default", 127.0.0.1, the limits of os_limits.h. */
void os_config_init(struct os_config *cfg);

/* Leases a slot, makes the NIC and starts its thread. Closed by ops->close. */
int os_host_open(const struct os_config *cfg, struct nic_host **out) MUST_CHECK;

/* A snapshot; takes the host's lock. */
void os_host_stats(struct nic_host *host, struct os_stats *out);

#endif
