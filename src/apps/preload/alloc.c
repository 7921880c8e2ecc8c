/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and its relatives: mimalloc, once the range is there. */
#include <errno.h>
#include <malloc.h>
#include <mimalloc.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

/* Mimalloc aligns up to half of a segment, 16 MiB; larger blocks come from the
 * mappings' part. */
#define ALIGN_MAX (8ull << 20)

EXPORT void *reallocarray(void *p, size_t count, size_t size);

static inline void ready(void)
{
	/* RUN-S1 */
	int state = atomic_load_explicit(&preload.state, memory_order_acquire);

	if (UNLIKELY(state < PRELOAD_FAR))
		preload_start();
}

/* ---- blocks that the allocator cannot align ------------------------------ */

/* In the page before the block. */
struct header {
	uint8_t *start;
	size_t bytes; /* of the mapping */
};

static struct header *header_of(void *p)
{
	return (struct header *)(void *)((uint8_t *)p - RUN_PAGE_BYTES);
}

static void *alloc_aligned(size_t align, size_t size)
{
	uint8_t *mem, *p;
	size_t bytes;

	/* Also where there is no far memory: the header says where it is. */
	if ((align & (align - 1)) ||
	    __builtin_add_overflow(size, align + RUN_PAGE_BYTES, &bytes) ||
	    !preload_is_far()) {
		errno = align & (align - 1) ? EINVAL : ENOMEM;
		return NULL;
	}
	mem = preload_maps_alloc(bytes);
	if (!mem) {
		errno = ENOMEM;
		return NULL;
	}
	p = (uint8_t *)align_up((uintptr_t)mem + RUN_PAGE_BYTES, align);
	*header_of(p) = (struct header){mem, align_up(bytes, RUN_PAGE_BYTES)};
	return p;
}

static size_t usable_aligned(void *p)
{
	const struct header *h = header_of(p);

	return (size_t)(h->start + h->bytes - (uint8_t *)p);
}

static void free_aligned(void *p)
{
	struct header h = *header_of(p);
	int saved = errno;

	(void)preload_maps_free(h.start, h.bytes);
	errno = saved;
}

static void *realloc_aligned(void *p, size_t size)
{
	size_t had = usable_aligned(p);
	void *q = mi_malloc(size);

	if (!q)
		return NULL;
	memcpy(q, p, had < size ? had : size);
	free_aligned(p);
	return q;
}

/* ---- what libc offers ---------------------------------------------------- */

EXPORT void *malloc(size_t size)
{
	ready();
	return mi_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	ready();
	return mi_calloc(count, size);
}

EXPORT void free(void *p)
{
	if (UNLIKELY(preload_maps_has(p)))
		free_aligned(p);
	else
		mi_free(p);
}

EXPORT void *realloc(void *p, size_t size)
{
	ready();
	/* As libc does it. */
	if (p && size == 0) {
		free(p);
		return NULL;
	}
	if (UNLIKELY(preload_maps_has(p)))
		return realloc_aligned(p, size);
	return mi_realloc(p, size);
}

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

EXPORT void *memalign(size_t align, size_t size)
{
	ready();
	if (UNLIKELY(align > ALIGN_MAX))
		return alloc_aligned(align, size);
	return mi_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	void *p;

	ready();
	if (LIKELY(align <= ALIGN_MAX))
		return mi_posix_memalign(out, align, size);
	if (align & (align - 1))
		return EINVAL;
	p = alloc_aligned(align, size);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

EXPORT void *valloc(size_t size)
{
	ready();
	return mi_valloc(size);
}

EXPORT void *pvalloc(size_t size)
{
	ready();
	return mi_pvalloc(size);
}

EXPORT size_t malloc_usable_size(void *p)
{
	if (UNLIKELY(preload_maps_has(p)))
		return usable_aligned(p);
	return mi_usable_size(p);
}
