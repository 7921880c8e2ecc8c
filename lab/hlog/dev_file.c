/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that is a file on a disk, without the kernel's cache: io_uring and
 * O_DIRECT. Reads are widened to whole sectors.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "hlog_device.h"
#include "slots.h"

enum {
	BLOCK = 4096, /* what every disk takes */
	SECTOR = 512, /* what most do */
};

struct file_device {
	struct hlog_device base;
	int fd;
	uint32_t sector;
};

struct file_slot {
	uint64_t token;
	uint32_t len_bytes; /* that must come or go */
	uint32_t skip;	    /* from the sector's begin to the data */
	bool is_read;
};

struct file_queue {
	struct hlog_queue base;
	struct io_uring ring;
	int fd;
	uint32_t sector;
	uint32_t slot_bytes;
	uint8_t *memory;
	struct file_slot *slot;
	struct slots slots;
	uint32_t unsent;
};

static void file_queue_close(struct hlog_queue *base)
{
	struct file_queue *q = container_of(base, struct file_queue, base);

	/* Waits in the kernel for what is under way. */
	io_uring_queue_exit(&q->ring);
	slots_release(&q->slots);
	free(q->memory);
	free(q->slot);
	free(q);
}

static int file_queue_open(struct hlog_device *dev,
			   const struct hlog_queue_options *opt,
			   struct hlog_queue **out)
{
	struct file_device *d = container_of(dev, struct file_device, base);
	struct file_queue *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	q->base.device = dev;
	q->fd = d->fd;
	q->sector = d->sector;
	q->slot_bytes =
		(uint32_t)align_up(opt->read_max + 2 * d->sector, BLOCK);
	q->slot = calloc(opt->depth, sizeof(*q->slot));
	q->memory = aligned_alloc(BLOCK, (size_t)opt->depth * q->slot_bytes);
	if (!q->slot || !q->memory || slots_init(&q->slots, opt->depth) < 0) {
		rc = -ENOMEM;
		goto err_free;
	}
	rc = io_uring_queue_init(u32_pow2_ceil(opt->depth), &q->ring, 0);
	if (rc < 0) {
		error_set(rc, "io_uring: %s", strerror(-rc));
		goto err_free;
	}
	*out = &q->base;
	return 0;

err_free:
	slots_release(&q->slots);
	free(q->memory);
	free(q->slot);
	free(q);
	return rc;
}

/* A slot and a queue entry, or -EAGAIN. */
static int begin(struct file_queue *q, uint32_t *i, struct io_uring_sqe **sqe)
{
	*i = slots_get(&q->slots);
	if (*i == SLOTS_NONE)
		return -EAGAIN;
	*sqe = io_uring_get_sqe(&q->ring);
	if (!*sqe) {
		slots_put(&q->slots, *i);
		return -EAGAIN;
	}
	q->unsent++;
	return 0;
}

static int check(const struct hlog_device *dev, uint64_t offset,
		 uint32_t len_bytes)
{
	return offset > dev->size_bytes || len_bytes > dev->size_bytes - offset
		       ? -ERANGE
		       : 0;
}

static int file_read(struct hlog_queue *base, uint64_t offset,
		     uint32_t len_bytes, uint64_t token)
{
	struct file_queue *q = container_of(base, struct file_queue, base);
	uint64_t from = offset & ~(uint64_t)(q->sector - 1);
	uint64_t to = align_up(offset + len_bytes, q->sector);
	struct io_uring_sqe *sqe;
	uint32_t i;
	int rc = check(base->device, offset, len_bytes);

	if (rc == 0 && to - from > q->slot_bytes)
		rc = -EMSGSIZE;
	if (rc == 0)
		rc = begin(q, &i, &sqe);
	if (rc < 0)
		return rc;
	q->slot[i] = (struct file_slot){.token = token,
					.len_bytes = len_bytes,
					.skip = (uint32_t)(offset - from),
					.is_read = true};
	io_uring_prep_read(sqe, q->fd, q->memory + (size_t)i * q->slot_bytes,
			   (unsigned)(to - from), from);
	io_uring_sqe_set_data64(sqe, i);
	return 0;
}

static int file_write(struct hlog_queue *base, uint64_t offset,
		      const void *data, uint32_t len_bytes, uint64_t token)
{
	struct file_queue *q = container_of(base, struct file_queue, base);
	struct io_uring_sqe *sqe;
	uint32_t i;
	int rc = check(base->device, offset, len_bytes);

	if (rc == 0)
		rc = begin(q, &i, &sqe);
	if (rc < 0)
		return rc;
	q->slot[i] = (struct file_slot){.token = token, .len_bytes = len_bytes};
	io_uring_prep_write(sqe, q->fd, data,
			    (unsigned)align_up(len_bytes, BLOCK), offset);
	io_uring_sqe_set_data64(sqe, i);
	return 0;
}

static void take(struct file_queue *q, const struct io_uring_cqe *cqe,
		 struct hlog_io *out)
{
	uint32_t i = (uint32_t)io_uring_cqe_get_data64(cqe);
	struct file_slot *sl = &q->slot[i];

	*out = (struct hlog_io){.token = sl->token};
	if (cqe->res < 0)
		out->err = cqe->res;
	else if ((uint32_t)cqe->res < sl->skip + sl->len_bytes)
		out->err = -EIO;
	else if (sl->is_read)
		out->data = q->memory + (size_t)i * q->slot_bytes + sl->skip;
	slots_hand(&q->slots, i);
}

static int file_poll(struct hlog_queue *base, struct hlog_io *done,
		     unsigned max)
{
	struct file_queue *q = container_of(base, struct file_queue, base);
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	slots_recycle(&q->slots);
	if (q->unsent) {
		int rc = io_uring_submit(&q->ring);

		if (rc < 0 && rc != -EAGAIN && rc != -EBUSY && rc != -EINTR)
			return rc;
		if (rc > 0)
			q->unsent -= u32_min((uint32_t)rc, q->unsent);
	}
	io_uring_for_each_cqe(&q->ring, head, cqe)
	{
		if (n == max)
			break;
		take(q, cqe, &done[n++]);
	}
	io_uring_cq_advance(&q->ring, n);
	return (int)n;
}

static void file_destroy(struct hlog_device *dev)
{
	struct file_device *d = container_of(dev, struct file_device, base);

	close(d->fd);
	free(d);
}

/* Whether single sectors can be read. */
static int probe_sector(struct file_device *d)
{
	void *block = aligned_alloc(BLOCK, BLOCK);
	int rc = 0;

	if (!block)
		return -ENOMEM;
	d->sector = SECTOR;
	if (pread(d->fd, block, SECTOR, SECTOR) < 0) {
		d->sector = BLOCK;
		if (pread(d->fd, block, BLOCK, 0) < 0)
			rc = -errno;
	}
	free(block);
	return rc;
}

static int open_file(const char *path, uint64_t size_bytes,
		     struct file_device *d)
{
	int rc;

	d->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
	if (d->fd < 0)
		return error_set(-errno, "%s: %s%s", path, strerror(errno),
				 errno == EINVAL ? " (the file system cannot "
						   "do without its cache)"
						 : "");
	/* Blocks now: a full disk is an error here, not in the middle. */
	rc = -posix_fallocate(d->fd, 0, (off_t)align_up(size_bytes, BLOCK));
	if (rc == 0)
		rc = probe_sector(d);
	if (rc < 0) {
		close(d->fd);
		return error_set(rc, "%s: %s", path, strerror(-rc));
	}
	return 0;
}

int hlog_device_file_create(const char *path, uint64_t size_bytes,
			    struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = file_queue_open,
		.queue_close = file_queue_close,
		.read = file_read,
		.write = file_write,
		.poll = file_poll,
		.destroy = file_destroy,
	};
	struct file_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	rc = open_file(path, size_bytes, d);
	if (rc < 0) {
		free(d);
		return rc;
	}
	d->base = (struct hlog_device){.ops = &ops,
				       .name = "file",
				       .size_bytes = size_bytes,
				       .clock = hlog_clock_real};
	*out = &d->base;
	return 0;
}
