/* SPDX-License-Identifier: Apache-2.0 */
/* Whole zeroed pages from the kernel, private or in a memfd. */
#ifndef AQ_PAGES_H
#define AQ_PAGES_H

#include "base/base.h"

size_t pages_round(size_t len_bytes);
/* Zeroed private pages, huge ones where they fit; NULL: no memory. */
void *pages_alloc(size_t len_bytes);
void pages_free(void *pages, size_t len_bytes);

/* A memfd of len_bytes zeroes that may be sealed; fd or -errno. */
int pages_memfd(const char *name, size_t len_bytes) MUST_CHECK;
/* Seals its size, so touching it cannot fault. */
int pages_seal_size(int fd) MUST_CHECK;
/* Whether a peer's memfd is sealed like that and has this size. */
int pages_check_sealed(int fd, size_t len_bytes) MUST_CHECK;
/*
 * A read-only twin of fd. The file can no longer be opened or mapped for
 * writing; existing mappings stay as they are. fixed_size: it cannot shrink
 * either, so touching it cannot fault. fd or -errno.
 */
int pages_open_read_only(int fd, bool fixed_size) MUST_CHECK;
/* Maps all of it shared; NULL: errno says why. */
void *pages_map(int fd, size_t len_bytes, bool writable);
/*
 * Makes all pages of a memfd that is mapped here and has none yet, huge ones
 * where the kernel has them, whatever shmem_enabled says (but `deny`).
 */
int pages_make(int fd, void *addr, size_t len_bytes) MUST_CHECK;

#endif
