/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a NIC lives: its env, its lock, and who moves its frames. os/ has a
 * host with a NIC thread and real ports, sim/ one on the virtual clock;
 * verbs/ knows only this header.
 */
#ifndef AQ_NIC_HOST_H
#define AQ_NIC_HOST_H

#include "base/lock.h"
#include "nic.h"

struct nic_host;

struct nic_host_ops {
	/*
	 * A thread found nothing to do and waits for this NIC: move frames in
	 * and out on its behalf. Takes the lock itself, if it is free; returns
	 * at once when somebody else holds it. In sim/ it does nothing.
	 */
	void (*drive)(struct nic_host *host);
	/*
	 * The caller may now do something else than poll: whoever has to serve
	 * the NIC from here on must be woken by peers. Called without the lock
	 * after a poll that left nothing outstanding, and before a sleep on a
	 * completion channel.
	 */
	void (*leave)(struct nic_host *host);
	/* Memory for the direct port: see aqdv_alloc. NULL where there is
	 * none. */
	int (*grant_alloc)(struct nic_host *host, size_t len_bytes,
			   unsigned flags, void **addr);
	int (*grant_free)(struct nic_host *host, void *addr);
	int (*grant_used)(struct nic_host *host, void *addr,
			  uint64_t *used_bytes);
	/*
	 * Registered memory, without the lock: before its region is made, and
	 * after it has ended. While it is watched, nic_memory_gone is called
	 * before an address that is unmapped can be mapped again. Watching
	 * returns what unwatching wants to know; 0: it is not watched, because
	 * the system does not let us, or there is too much already. NULL where
	 * there is no such thing.
	 */
	uint64_t (*memory_watch)(struct nic_host *host, const void *addr,
				 size_t len_bytes);
	void (*memory_unwatch)(struct nic_host *host, const void *addr,
			       size_t len_bytes, uint64_t since);
	/* Gives the NIC back; the last user's call stops its thread. */
	void (*close)(struct nic_host *host);
	/* The clock is virtual: who waits must call env_relax and never sleep
	 * in the kernel, and there is no wall clock. */
	bool is_simulated;
};

enum nic_grant_flags {
	NIC_GRANT_READ_ONLY = 1u << 0, /* peers may map it, never write it */
	NIC_GRANT_SPARSE = 1u << 1,    /* pages exist once they are touched */
};

struct nic_host {
	const struct nic_host_ops *ops;
	struct env *env;
	struct nic *nic;
	struct lock lock;
};

/* A source of devices: the real ones of this machine, or a simulation's. Any
 * thread may call it. */
struct nic_provider {
	void *ctx;
	unsigned (*count)(void *ctx);
	/* Fills in what can be said without opening. */
	void (*describe)(void *ctx, unsigned index, char name[64],
			 uint64_t *guid);
	/* Opened twice, a device gives the same host again, counted. NICs see
	 * only those of their rack; NULL is the rack of the settings. */
	int (*open)(void *ctx, unsigned index, const char *rack,
		    struct nic_host **out);
};

/* The devices of this machine. os/ defines it; where os/ is not linked in, a
 * weak one in verbs/ returns NULL. */
const struct nic_provider *verbs_default_provider(void);

#endif
