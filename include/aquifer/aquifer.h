/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in other machines: open a rack, open a region, read and write.
 *
 *	struct aq_rack *rack;
 *	struct aq_region *region;
 *	uint64_t value = 42;
 *
 *	if (aq_rack_open(NULL, &rack) ||
 *	    aq_region_create(rack, "data", 1 << 20, NULL, &region) ||
 *	    aq_write(region, 0, &value, sizeof(value)))
 *		fprintf(stderr, "%s\n", aq_last_error());
 *
 * Link with `pkg-config --libs aquifer`. No environment and no RDMA hardware
 * is needed; a rack on this machine is started with `aquifer up`.
 *
 * Errors: every function returns 0 or a negative errno. These have a meaning of
 * their own:
 *	-EHOSTDOWN	a node of the rack is lost, or did not answer in time
 *	-ESTALE		the region is not what was opened: it was deleted, or
 *			its node was started anew; open or create it again
 *	-EREMOTEIO	the node failed the operation
 *	-EDQUOT		the tenant's quota is used up
 *	-ENOSPC		no node has that much memory left
 *	-EACCES		wrong token, or a right that was not granted
 *	-ERANGE		outside the region
 *	-EPROTONOSUPPORT the node speaks another major version
 * aq_strerror() and aq_last_error() explain them in words.
 *
 * Threads: racks and regions may be shared between threads; every thread gets
 * its own queue pairs, which end with the thread or with aq_rack_close. After
 * fork the child opens its own: on inherited handles every call but the two
 * close functions returns -ESTALE.
 *
 * Blocking: every function that talks to a node returns within the rack's
 * deadline (rack.deadline in rack.ini, 5 s; see aq_rack_set_deadline); an
 * operation that a node on another machine did not answer takes up to a quarter
 * of it, and a second at most, to find out why. The library starts threads of
 *its own: the NIC's, one that watches registered memory, one that sends
 *heartbeats, one that keeps asynchronous contexts attached, and one for a table
 *that grows or has two copies. All of them block all signals but those of
 *faults.
 *
 * Units: sizes, offsets and lengths are bytes.
 */
#ifndef AQUIFER_AQUIFER_H
#define AQUIFER_AQUIFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AQ_API __attribute__((visibility("default")))

struct aq_rack;
struct aq_region;

/* ---- racks -------------------------------------------------------------- */

/*
 * Opens the rack of that name; NULL: the configured one, which is "local" where
 * nothing is configured. Its nodes are all sockets in its runtime directory,
 * and the [node NAME] sections of rack.ini if that names this rack. A process
 * may have several racks open, each of them also more than once. The token is
 * AQUIFER_TOKEN from the environment, or the file `token` in the runtime
 * directory.
 *
 * -ENOENT: there is no node; -EHOSTDOWN: none of them answers. Nodes that are
 * down at this moment are found when they are back. The caller owns *rack.
 */
AQ_API int aq_rack_open(const char *name, struct aq_rack **rack);

/*
 * Ends all connections and frees the handle. Regions must be closed before, and
 * no other thread may use the rack any more. NULL is allowed.
 */
AQ_API void aq_rack_close(struct aq_rack *rack);

/* The most time that one call may take, 1 ms to 1 h; -ERANGE otherwise. It
 * holds for all threads from their next call on. */
AQ_API int aq_rack_set_deadline(struct aq_rack *rack, uint32_t milliseconds);
AQ_API uint32_t aq_rack_deadline(const struct aq_rack *rack);

/* Another tenant's token: 64 hexadecimal digits, -EINVAL otherwise. It holds
 * for everything opened from here on; call it before regions are opened. */
AQ_API int aq_rack_set_token(struct aq_rack *rack, const char *token);

/* ---- regions ------------------------------------------------------------ */

enum {
	AQ_REGION_NAME_MAX = 40,     /* characters of a region's name */
	AQ_REGION_NODES_ALL = 65535, /* as many nodes as there are */
};

enum aq_region_create_flags {
	/* The NIC's own memory: little, on one node, never mapped, and quick
	 * at atomics. -ENOSPC when it is used up, -EOPNOTSUPP where the NIC
	 * has none. It cannot be resized. */
	AQ_REGION_DEVICE = 1u << 0,
	/* The switch that the rack's NICs are plugged into replaces atomics on
	 * the region. -EOPNOTSUPP without such a switch. It cannot be
	 * resized. */
	AQ_REGION_SWITCH_ATOMICS = 1u << 1,
};

/* Zero-initialise it; unset members have their default. */
struct aq_region_options {
	/* Memory nodes to spread the region over; 0: one. */
	uint32_t nodes;
	uint32_t flags; /* enum aq_region_create_flags */
	/* Bytes that stay together on one node, a power of two from 4 KiB to
	 * 1 GiB; 0: 64 KiB. Without meaning on one node. */
	uint64_t stripe_bytes;
	/* The node to use, when nodes is 0 or 1; NULL: the one with the most
	 * free memory. */
	const char *node;
	/* What the region is a part of, "kv users"; NULL: of nothing. Parts are
	 * deleted and resized by aq_region_delete_forced and
	 * aq_region_resize_forced only. */
	const char *part_of;
	uint64_t reserved_more[3];
};

struct aq_region_stat {
	uint64_t size_bytes;
	uint64_t stripe_bytes; /* 0 on one node */
	uint32_t nodes;
	/* The first piece's number on its node, and renewals of its keys. */
	uint32_t id;
	uint32_t epoch;
	uint32_t nodes_missing; /* of aq_region_each */
};

enum aq_region_flags {
	AQ_REGION_READ_ONLY = 1u << 0, /* the NIC refuses all else */
	/* The node can shut this process out at once, by ending its connection
	 * or its grant. The region is then not mapped, even where it could be,
	 * so operations cost frames. Without this flag a process that has the
	 * region mapped reaches it until the region is deleted or resized. */
	AQ_REGION_REVOCABLE = 1u << 1,
};

/*
 * Makes a region of zeros and opens it. Names have 1 to 40 letters, digits, '_'
 * and '-'. The node may round the size up. -EEXIST, -ENOSPC, -EDQUOT; when one
 * of several nodes fails, what the others made is taken back. The region stays
 * until it is deleted or its node ends. `options` may be NULL.
 */
AQ_API int aq_region_create(struct aq_rack *rack, const char *name,
			    uint64_t size_bytes,
			    const struct aq_region_options *options,
			    struct aq_region **region);

/* -ENOENT: no node has it. `flags` is 0 or of enum aq_region_flags. */
AQ_API int aq_region_open(struct aq_rack *rack, const char *name,
			  unsigned flags, struct aq_region **region);

/* Frees the handle; the memory stays. NULL is allowed. Calls with a closed
 * handle return -EBADF, as long as few others were closed since. */
AQ_API void aq_region_close(struct aq_region *region);

/* Deletes the region on all its nodes, for all clients. Handles that are still
 * open return -ESTALE from then on. -EPERM: it is a part of something, such as
 * a table, which has a call of its own to delete it. */
AQ_API int aq_region_delete(struct aq_rack *rack, const char *name);
/* The same, also of a part. What it was a part of is damaged by that. */
AQ_API int aq_region_delete_forced(struct aq_rack *rack, const char *name);

/* Grows with zeros or cuts. Other users of the region follow by themselves.
 * -EPERM: it is a part of something. */
AQ_API int aq_region_resize(struct aq_region *region, uint64_t size_bytes);
AQ_API int aq_region_resize_forced(struct aq_region *region,
				   uint64_t size_bytes);

/* Asks the nodes, so it also sees what others changed. */
AQ_API int aq_region_stat(struct aq_region *region,
			  struct aq_region_stat *stat);

/* The size when it was last heard of; does not ask. */
AQ_API uint64_t aq_region_size(struct aq_region *region);

/* Calls `each` for all regions of the tenant until it returns other than 0,
 * which is returned. A striped region of which nodes are missing is shown, too:
 * nodes_missing says of how many, and its size is the likely one, which differs
 * from the size that it had by less than a stripe for each node. */
typedef int (*aq_region_fn)(const char *name, const struct aq_region_stat *stat,
			    void *user);
AQ_API int aq_region_each(struct aq_rack *rack, aq_region_fn each, void *user);

/* ---- operations --------------------------------------------------------- */

/*
 * Copy between the region and `buf`, and return when it is done. The buffer
 * needs no registration. A failed write may have been done, whole or in part;
 * it is not tried again when its connection is lost, because others may have
 * written there since. Transfers of 8 aligned bytes are atomic towards each
 * other; larger ones are not.
 */
AQ_API int aq_read(struct aq_region *region, uint64_t offset, void *buf,
		   size_t len_bytes);
AQ_API int aq_write(struct aq_region *region, uint64_t offset, const void *buf,
		    size_t len_bytes);

/*
 * Atomic operations on 8 bytes at an offset divisible by 8 (-EINVAL otherwise),
 * in host byte order. *old is what stood there; for aq_cas the exchange
 * happened if it equals `expected`. `old` may be NULL.
 *
 * They are never tried twice: after -EHOSTDOWN the operation has happened once
 * or not at all.
 */
AQ_API int aq_cas(struct aq_region *region, uint64_t offset, uint64_t expected,
		  uint64_t desired, uint64_t *old);
AQ_API int aq_faa(struct aq_region *region, uint64_t offset, uint64_t add,
		  uint64_t *old);

/* ---- asynchronous operations -------------------------------------------- */

/*
 * Reads and writes that cost the caller a few local stores: the request goes to
 * rings in this process's memory, an engine elsewhere in the rack finds it
 * there, moves the data and writes its progress back. Issuing and polling make
 * no system call and take no lock.
 *
 *	struct aq_async *a;
 *	struct aq_poll *poll;
 *	struct aq_response done[16];
 *	int64_t id;
 *
 *	aq_async_open(rack, NULL, &a);
 *	int r = aq_async_add(a, region);
 *	aq_poll_create(a, &poll);
 *	id = aq_async_read(a, (uint32_t)r, 4096, buf, 64);
 *	aq_poll_add(poll, id);
 *	...
 *	int n = aq_poll_wait(poll, done, 16, 1000000);
 *
 * Order: requests of one kind (reads, writes) of one context are executed and
 * completed in the order they were issued; a read and a write that overlap are,
 * too. Every later read, of any client, sees a completed write. Of transfers
 * larger than 8 aligned bytes, others may see a part.
 *
 * Threads: a context and its poll groups belong to one thread at a time. After
 * fork the child's calls return -ESTALE.
 *
 * Engine: when it is lost, requests stay in the rings, and the next engine goes
 * on; no write is executed twice. When there is no engine for half of the
 * rack's deadline, new requests and waiting calls return -EHOSTDOWN. A memory
 * node that is lost fails its requests with -EHOSTDOWN: a write that failed may
 * have been done.
 */
struct aq_async;
struct aq_poll;

enum {
	AQ_ASYNC_REQUESTS_MAX = 65536,
	AQ_ASYNC_REGIONS_MAX = 64,	/* of one context */
	AQ_ASYNC_BYTES_MAX = 256 << 20, /* of one data ring */
};

enum aq_async_flags {
	/*
	 * Where the engine and a memory node are processes of one host, the
	 * engine maps the regions, and reads become its own loads; elsewhere
	 * nothing changes. The engine is trusted with these regions then, and a
	 * read of more than eight bytes may see half of another thread's write,
	 * as on hardware. Writes still go through the NICs, and so does all
	 * traffic between the engine and this process.
	 */
	AQ_ASYNC_DIRECT = 1u << 0,
};

/* Zero-initialise it; unset members have their default. */
struct aq_async_options {
	/* Requests under way at most, a power of two, 16 to
	 * AQ_ASYNC_REQUESTS_MAX; 0: 1024. */
	uint32_t requests;
	/* Completions that the engine may collect before it reports them; 1: it
	 * reports each at once; 0: its default. It never waits when nothing
	 * else is under way, nor longer than flush_us (0: its default). */
	uint32_t batch;
	uint32_t flush_us;
	uint32_t flags; /* enum aq_async_flags; -EINVAL: unknown ones */
	/* Data of reads and writes under way, powers of two from 4 KiB to
	 * AQ_ASYNC_BYTES_MAX; 0: 1 MiB. One request has half of it at most. */
	uint64_t read_bytes;
	uint64_t write_bytes;
	/* The engine's name; NULL: the one that has the fewest contexts. */
	const char *engine;
	uint64_t reserved_more[4];
};

/* Makes the rings and attaches to an engine. -ENOENT: the rack has none;
 * -EHOSTDOWN: none answers; -ENOSPC: it is full. `options` may be NULL. */
AQ_API int aq_async_open(struct aq_rack *rack,
			 const struct aq_async_options *options,
			 struct aq_async **async);
/* Requests that are under way are forgotten; writes may have been done. Close
 * contexts before the rack, regions before or after. NULL is allowed. Waits for
 * an engine that does not answer, for the rack's deadline at most. */
AQ_API void aq_async_close(struct aq_async *async);

/* Lets this context use the region. Returns its number here, 0 or more, or
 * -errno; -EHOSTDOWN: its engine is gone and no other answers, which may be
 * over soon. The region handle may be closed once it is no longer needed; the
 * number stays valid until the context is closed. */
AQ_API int aq_async_add(struct aq_async *async, struct aq_region *region);

/*
 * A request id, 0 or more, or -errno:
 *	-EAGAIN		a ring is full; poll, then try again
 *	-EMSGSIZE	more than half of the data ring, or nothing at all
 *	-ERANGE		outside the region
 *	-EBADF		no such region number
 *	-EACCES		a write to a region that was opened read-only
 *	-ESTALE		the region is gone
 *	-EHOSTDOWN	there is no engine
 * For these aq_last_error() stays as it was; aq_strerror() has words.
 *
 * A read's destination is filled by the polling call that reports it (or finds
 * it done), never before and never after. A write's source is copied at once.
 */
AQ_API int64_t aq_async_read(struct aq_async *async, uint32_t region,
			     uint64_t offset, void *dest, size_t len_bytes);
AQ_API int64_t aq_async_write(struct aq_async *async, uint32_t region,
			      uint64_t offset, const void *src,
			      size_t len_bytes);

/* What an id says: bit 62 is 1 for a write, bits 48 to 61 are the region's
 * number, the rest counts the requests of that kind from 1 on. */
static inline int aq_id_is_write(int64_t id)
{
	return (int)(id >> 62 & 1);
}

static inline uint32_t aq_id_region(int64_t id)
{
	return (uint32_t)(id >> 48 & 0x3fff);
}

static inline uint64_t aq_id_sequence(int64_t id)
{
	return (uint64_t)id & 0xffffffffffffull;
}

/* Looks at the rings once. 1: done, 0: under way, or the error that the request
 * ended with; -EINVAL: never issued. An error is remembered while fewer than
 * `requests` of its kind were issued after it. */
AQ_API int aq_async_done(struct aq_async *async, int64_t id);

/* Requests that are under way. */
AQ_API uint32_t aq_async_pending(const struct aq_async *async);

struct aq_response {
	int64_t id;
	int32_t err; /* 0 or -errno */
	uint32_t reserved;
};

/* A notification group of one context, which it must not outlive. */
AQ_API int aq_poll_create(struct aq_async *async, struct aq_poll **poll);
AQ_API void aq_poll_destroy(struct aq_poll *poll);
/* -EINVAL: the id was never issued; -EEXIST: it is in the group already;
 * -ENOSPC: the group has as many as the context has requests. A request may be
 * in several groups. */
AQ_API int aq_poll_add(struct aq_poll *poll, int64_t id);
AQ_API int aq_poll_remove(struct aq_poll *poll, int64_t id); /* -ENOENT */

/*
 * Waits until max_count requests of the group are complete, or all that are in
 * it, or the time is over; 0 only looks. Returns how many, which leave the
 * group; reads and writes each in the order of their issue. -EHOSTDOWN: there
 * is no engine and nothing is complete; what is under way stays so.
 */
AQ_API int aq_poll_wait(struct aq_poll *poll, struct aq_response *responses,
			unsigned max_count, uint32_t timeout_us);

/* ---- names in far memory ------------------------------------------------ */

/* A remote pointer: 16 bits of region id, 48 bits of offset. */
typedef uint64_t aq_ptr;

static inline aq_ptr aq_ptr_make(uint32_t region_id, uint64_t offset)
{
	return (uint64_t)(region_id & 0xffff) << 48 |
	       (offset & 0xffffffffffffull);
}

static inline uint32_t aq_ptr_region(aq_ptr ptr)
{
	return (uint32_t)(ptr >> 48);
}

static inline uint64_t aq_ptr_offset(aq_ptr ptr)
{
	return ptr & 0xffffffffffffull;
}

/* ---- words -------------------------------------------------------------- */

/* What a code means here; accepts err and -err; static text, never NULL. */
AQ_API const char *aq_strerror(int err);

/* This thread's last failure in words: what failed and, where there is advice,
 * what to do. Valid until the thread's next failure; "" before the first. */
AQ_API const char *aq_last_error(void);

/* The version of the interface, "1.0" and so on. Within a major version the
 * interface only grows. */
AQ_API const char *aq_version(void);

#ifdef __cplusplus
}
#endif

#endif
