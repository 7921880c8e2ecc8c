/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cached pages of one segment: a memfd that all programs of the machine
 * map, and the userfaultfd of each of them, which is ours. A page is in the
 * file or it is not; what is in the file every program can read, and a program
 * can write what is not protected in *its* page tables. So
 *
 *  a page appears	in one step, and only after every other view has a mark
 *			that protects it: else a program that has never touched
 *			the page could write it unseen
 *  no more stores	protect in every view; when that returns, none is under
 *			way
 *  a page goes		punched out of the file: gone in all views, marks too
 *
 * Marks on pages that are not there need Linux 5.19. One thread.
 */
#ifndef AQ_SHD_MEM_H
#define AQ_SHD_MEM_H

#include <sys/types.h>

#include "base/base.h"
#include "base/list.h"
#include "wire/coherence_wire.h"

/* A mapping of pages [first, first + count) of the segment; embedded by who
 * owns it. Its process may unmap parts of it at any time. */
struct shd_view {
	struct list node; /* of the mem */
	int uffd;
	uint64_t base; /* where page 0 would be */
	uint32_t first, count;
	bool is_gone; /* its process has ended, or something else is there */
};

struct shd_mem {
	int fd;
	uint32_t page_count;
	uint64_t *here; /* a bit for each page that is in the file, or hidden */
	uint32_t here_count;
	struct list views;
	struct shd_view own; /* ours, where pages of nobody appear */
	int aside; /* hidden pages, as a file of the same size; or -1 */
};

/* A userfaultfd of this process for the mappings of all mems, or -errno with
 * words. */
int shd_mem_own_uffd(void) MUST_CHECK;
/* -errno with words. */
int shd_mem_init(struct shd_mem *m, uint32_t page_count,
		 int own_uffd) MUST_CHECK;
/* Programs that still have it find no memory: SIGBUS. */
void shd_mem_release(struct shd_mem *m);

/* Takes a view whose uffd (which becomes the mem's) was made by the process
 * that mapped these pages of the file at `start`. -EPROTO: it is no
 * userfaultfd; -ENOENT: it has no such mapping; -EOPNOTSUPP: not with this
 * kernel. */
int shd_mem_add(struct shd_mem *m, struct shd_view *v, int uffd, uint64_t start,
		uint32_t first, uint32_t count) MUST_CHECK;
void shd_mem_drop(struct shd_mem *m, struct shd_view *v);
/* Looks whether its process has ended, or executes another program. */
void shd_mem_look(struct shd_view *v);

bool shd_mem_has(const struct shd_mem *m, uint32_t page);
/* The page appears, protected everywhere but in v, which may write it if so
 * said and whose threads run on; NULL: in no view. -errno: it does not. */
int shd_mem_put(struct shd_mem *m, uint32_t page, const void *bytes,
		struct shd_view *v, bool may_write) MUST_CHECK;
/* The view may write the page, which is here; its threads run on. */
void shd_mem_unprotect(struct shd_mem *m, struct shd_view *v, uint32_t page);
/* Threads of the view that wait for the page look again. */
void shd_mem_wake(struct shd_view *v, uint32_t page);
/* A thread waits for a page that is here: runs on. What the program itself has
 * cut out of the file is zeros, as it is of any shared memory. */
void shd_mem_again(struct shd_mem *m, struct shd_view *v, uint32_t page);
/* SIGBUS for who touches it in this view, until it maps the file again.
 * -EINVAL: this kernel cannot do it. */
int shd_mem_poison(struct shd_view *v, uint32_t page) MUST_CHECK;

/* No store to these pages is under way or comes later. */
int shd_mem_protect(struct shd_mem *m, uint32_t page,
		    uint32_t count) MUST_CHECK;
/* Copies the page aside; what the program cut out is zeros. */
int shd_mem_read(const struct shd_mem *m, uint32_t page, void *out) MUST_CHECK;
int shd_mem_punch(struct shd_mem *m, uint32_t page, uint32_t count) MUST_CHECK;

/* Nobody can touch anything; pages come, are read and go all the same. And all
 * is back, protected. */
int shd_mem_hide(struct shd_mem *m) MUST_CHECK;
int shd_mem_unhide(struct shd_mem *m) MUST_CHECK;
/* SIGBUS for all who touch it, for ever. */
void shd_mem_cut(struct shd_mem *m);

#endif
