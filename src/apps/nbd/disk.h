/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk of far pages: byte ranges over a page store. Ranges that were never
 * written, or were trimmed, read as zeros and take no room; a page that is lost
 * is an error. Belongs to one thread at a time; every call returns within the
 * store's deadline.
 */
#ifndef AQ_NBD_DISK_H
#define AQ_NBD_DISK_H

#include "base/base.h"

struct aq_rack;
struct nbd_disk;

struct nbd_disk_options {
	const char *rack; /* NULL: as configured */
	const char *name; /* in the nodes' lists */
	const char *mode; /* of the page store; NULL: chain */
	uint64_t size_bytes;
	unsigned copies;      /* 0: 1 */
	uint32_t patience_ms; /* of the page store */
};

int nbd_disk_open(const struct nbd_disk_options *options,
		  struct nbd_disk **out) MUST_CHECK;
void nbd_disk_close(struct nbd_disk *d);
uint64_t nbd_disk_size(const struct nbd_disk *d);
/* The bytes that the rack had room for when the disk was opened. */
uint64_t nbd_disk_room(const struct nbd_disk *d);
/* Whether pages that are no longer needed return to the pool while it is open.
 */
bool nbd_disk_gives_back(const struct nbd_disk *d);

/* Ranges are within the disk, on any byte. */
int nbd_disk_read(struct nbd_disk *d, void *buf, uint32_t bytes,
		  uint64_t offset) MUST_CHECK;
int nbd_disk_write(struct nbd_disk *d, const void *buf, uint32_t bytes,
		   uint64_t offset) MUST_CHECK;
/* Whole pages are given back, where that is possible; parts are written. */
int nbd_disk_zero(struct nbd_disk *d, uint64_t bytes,
		  uint64_t offset) MUST_CHECK;
/* How many bytes from `offset` on are alike; *is_hole: nothing is there. */
uint64_t nbd_disk_extent(const struct nbd_disk *d, uint64_t offset,
			 uint64_t max, bool *is_hole);
/* A node that is lost, or NULL. */
const char *nbd_disk_lost_node(const struct nbd_disk *d);

#endif
