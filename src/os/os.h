/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real world for a NIC: Linux clock, memory, cables and an engine thread.
 * verbs/ takes the provider; tests and benches open hosts of their own.
 */
#ifndef AQ_OS_H
#define AQ_OS_H

#include "nic_host.h"
#include "os_limits.h"

#define OS_STATS(X)                                                  \
	X(connects, "cables opened")                                 \
	X(accepts, "cables accepted")                                \
	X(hangups, "cables whose peer is gone")                      \
	X(refused_version, "cables refused: other version")          \
	X(refused_peer, "cables refused: another user's process")    \
	X(refused_hello, "cables refused: malformed introduction")   \
	X(broken_rings, "cables closed: impossible ring contents")   \
	X(engine_sleeps, "times the engine went to sleep")           \
	X(wakes_sent, "sleeping peers woken")                        \
	X(nudges_sent, "peers woken that had not read for too long") \
	X(direct_maps, "memory of peers mapped")                     \
	X(direct_refusals, "mappings that a peer refused")           \
	X(direct_grants, "mappings given to peers")                  \
	X(direct_denials, "mappings refused to peers")               \
	X(direct_revokes, "mappings taken back")

struct os_stats {
#define OS_STAT_FIELD(name, help) uint64_t name;
	OS_STATS(OS_STAT_FIELD)
#undef OS_STAT_FIELD
};

struct os_config {
	char rack[OS_RACK_NAME_MAX]; /* NICs see only those of their rack */
	uint8_t address[4];	     /* IPv4 of this host */
	uint32_t ring_bytes;	     /* a power of two; 0: OS_RING_BYTES */
	uint32_t engine_yields;	     /* idle turns before the engine sleeps */
	const char *pcap_path;	     /* NULL: no capture; "%p" is the pid */
	uint64_t *nic_counters;	     /* NULL: the NIC's own memory */
	struct os_stats *stats;	     /* NULL: the host's own memory */
	enum nic_bug bug;
};

/* Defaults: rack "default", 127.0.0.1, the limits of os_limits.h. */
void os_config_init(struct os_config *cfg);

/* Leases a slot, makes the NIC and starts its engine. Closed by ops->close. */
int os_host_open(const struct os_config *cfg, struct nic_host **out) MUST_CHECK;

/* A snapshot; takes the host's lock. */
void os_host_stats(struct nic_host *host, struct os_stats *out);

#endif
