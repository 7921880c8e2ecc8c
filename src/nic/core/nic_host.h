/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a NIC lives: its env, its lock, and the operations that move its
 * frames. os/ has a host with a NIC thread and real ports, sim/ one on the
 * virtual clock; verbs/ knows only this header.
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
	 * at once when another thread holds it. In sim/ it does nothing.
	 */
	void (*drive)(struct nic_host *host);
	/*
	 * The caller may stop polling now, so peers must wake the thread that
	 * serves the NIC from here on. Called without the lock after a poll
	 * that left nothing outstanding, and before a sleep on a completion
	 * channel.
	 */
	void (*leave)(struct nic_host *host);
	/*
	 * As drive, by a thread that has nothing else to do: it sleeps until a
	 * frame comes, at most for this long; 0: it will not come again soon,
	 * whatever is outstanding. False: that cannot be done now. NULL: not
	 * on this host.
	 */
	bool (*doze)(struct nic_host *host, uint64_t max_ns);
	/* Memory for the direct port: see aqdv_alloc. NULL where there is
	 * none. */
	int (*grant_alloc)(struct nic_host *host, size_t len_bytes,
			   unsigned flags, void **addr);
	int (*grant_free)(struct nic_host *host, void *addr);
	int (*grant_used)(struct nic_host *host, void *addr,
			  uint64_t *used_bytes);
	/* 1: no peer ever had it mapped; 0: one had. */
	int (*grant_private)(struct nic_host *host, void *addr);
	/*
	 * Called without the lock, before a memory region is made and after it
	 * has ended. While memory is watched, nic_memory_gone is called before
	 * an unmapped address can be mapped again. memory_watch returns a value
	 * for memory_unwatch; 0: the memory is not watched, because the system
	 * does not allow it or too much is watched already. NULL: this host
	 * cannot watch.
	 */
	uint64_t (*memory_watch)(struct nic_host *host, const void *addr,
				 size_t len_bytes);
	void (*memory_unwatch)(struct nic_host *host, const void *addr,
			       size_t len_bytes, uint64_t since);
	/* Gives the NIC back; the last user's call stops its thread. */
	void (*close)(struct nic_host *host);
	/* The clock is virtual: a thread that waits must call env_relax and
	 * never sleep in the kernel, and there is no wall clock. */
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
	/* Fills in what is known without opening the device. */
	void (*describe)(void *ctx, unsigned index, char name[64],
			 uint64_t *guid);
	/* A device that is opened twice gives the same host again, counted.
	 * NICs see only those of their rack; NULL is the rack of the
	 * settings. */
	int (*open)(void *ctx, unsigned index, const char *rack,
		    struct nic_host **out);
};

/* The devices of this machine. os/ defines it; where os/ is not linked in, a
 * weak one in verbs/ returns NULL. */
const struct nic_provider *verbs_default_provider(void);

#endif
