/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the far part of a log lies. A device is a flat space of bytes with
 * asynchronous reads and writes; each thread has a queue of its own.
 *
 * Six kinds: memory of this process, a file (io_uring, O_DIRECT), one-sided
 * verbs that wait for each request, one-sided verbs in batches, batches that
 * I/O threads carry to a server (the way of Redy), and requests by local stores
 * alone that an engine executes (Cowbird).
 */
#ifndef AQ_HLOG_DEVICE_H
#define AQ_HLOG_DEVICE_H

#include <stdlib.h>

#include "base/base.h"
#include "client/link.h"

struct hlog_device;

/* Time and waiting; `relax` is called by every loop that waits. */
struct hlog_clock {
	uint64_t (*now_ns)(void *ctx);
	void (*relax)(void *ctx);
	void *ctx;
};

/* The machine's own clock. */
extern const struct hlog_clock hlog_clock_real;

struct hlog_queue_options {
	uint32_t depth;	   /* requests under way */
	uint32_t read_max; /* bytes of one read */
	void *write_from;  /* all writes come out of this memory ... */
	size_t write_from_bytes;
};

/* The queue of one thread. Devices embed it in their own struct. */
struct hlog_queue {
	struct hlog_device *device;
};

struct hlog_io {
	uint64_t token; /* as given */
	int err;	/* 0 or -errno */
	/* What was read; stays until the next poll of the queue. */
	const void *data;
};

/*
 * read and write return 0 or -errno; -EAGAIN: the queue is full, poll first.
 * They may hold requests back to send them together; poll sends them. The bytes
 * of a write must not change before it is done, and done means that any queue
 * of the device reads them. poll returns how many requests were done, at most
 * `max`, or -errno. It does not wait for them, but if the last call brought
 * nothing either, a device may use the thread for some microseconds.
 *
 * Writes start at multiples of 4096 in file and memory; the bytes behind them
 * up to the next such multiple may be written as well.
 */
struct hlog_device_ops {
	int (*queue_open)(struct hlog_device *dev,
			  const struct hlog_queue_options *opt,
			  struct hlog_queue **out);
	/* What is still under way is forgotten. */
	void (*queue_close)(struct hlog_queue *q);
	int (*read)(struct hlog_queue *q, uint64_t offset, uint32_t len_bytes,
		    uint64_t token);
	int (*write)(struct hlog_queue *q, uint64_t offset, const void *data,
		     uint32_t len_bytes, uint64_t token);
	int (*poll)(struct hlog_queue *q, struct hlog_io *done, unsigned max);
	/* NULL: the device is one piece of memory, which it begins. */
	void (*destroy)(struct hlog_device *dev);
};

struct hlog_device {
	const struct hlog_device_ops *ops;
	const char *name;
	uint64_t size_bytes;
	struct hlog_clock clock;
};

static inline void hlog_device_destroy(struct hlog_device *dev)
{
	if (dev && dev->ops->destroy)
		dev->ops->destroy(dev);
	else
		free(dev);
}

/* Waits for one request alone on a queue of its own; 0 or -errno. For set-up
 * and recovery. `buf` is inside the queue's write_from for writes. */
int hlog_device_read_wait(struct hlog_queue *q, uint64_t offset, void *buf,
			  uint32_t len_bytes) MUST_CHECK;
int hlog_device_write_wait(struct hlog_queue *q, uint64_t offset,
			   const void *buf, uint32_t len_bytes) MUST_CHECK;

/* ---- the kinds; each returns 0 or -errno, with words -------------------- */

/* Zeroed memory of this process. */
int hlog_device_mem_create(uint64_t size_bytes,
			   struct hlog_device **out) MUST_CHECK;

/* A file, made if it is not there, with its old contents otherwise. -ENOSYS
 * where the kernel has no io_uring, -EINVAL where the file system cannot do
 * without its cache. */
int hlog_device_file_create(const char *path, uint64_t size_bytes,
			    struct hlog_device **out) MUST_CHECK;

/* How the queues of a verbs device get their queue pairs: client_link_open in a
 * real rack, something else in a simulator. */
struct hlog_link_source {
	int (*open)(void *ctx, const struct client_link_options *opt,
		    struct client_link **out);
	void (*close)(void *ctx, struct client_link *link);
	void *ctx;
};

struct hlog_verbs_options {
	struct hlog_link_source links; /* its ctx outlives the device */
	uint64_t size_bytes;
	/* Requests that are posted together; 1: each at once. */
	uint32_t batch;
	/* Each request is waited for in the call that makes it. */
	bool is_sync;
	/* Only the last request of a batch has a completion, which counts for
	 * all: fewer completions, but later. */
	bool is_quiet;
	enum client_link_rights rights;
};

/* Far memory by one-sided READ and WRITE. */
int hlog_device_verbs_create(const struct hlog_verbs_options *opt,
			     struct hlog_device **out) MUST_CHECK;

/* Far memory by requests that an engine executes. Each queue is a context of
 * its own in the rack, which must outlive the device. */
struct aq_rack;
struct aq_region;
struct aq_async_options;
int hlog_device_cow_create(struct aq_rack *rack, struct aq_region *region,
			   const struct aq_async_options *async,
			   struct hlog_device **out) MUST_CHECK;

#endif
