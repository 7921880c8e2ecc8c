/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and its relatives: mimalloc, once the range is there. */
#include <errno.h>
#include <malloc.h>
#include <mimalloc.h>
#include <stdlib.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *reallocarray(void *p, size_t count, size_t size);

static inline void ready(void)
{
	int state = atomic_load_explicit(&preload.state, memory_order_acquire);

	if (UNLIKELY(state < PRELOAD_FAR))
		preload_start();
}

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

EXPORT void *realloc(void *p, size_t size)
{
	ready();
	return mi_realloc(p, size);
}

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
	ready();
	return mi_reallocarray(p, count, size);
}

EXPORT void free(void *p)
{
	mi_free(p);
}

EXPORT void *memalign(size_t align, size_t size)
{
	ready();
	return mi_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	ready();
	return mi_memalign(align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	ready();
	return mi_posix_memalign(out, align, size);
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
	return mi_usable_size(p);
}
