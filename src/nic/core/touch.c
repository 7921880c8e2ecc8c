/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every access to registered memory. The program may unmap it while its key
 * lives: an adapter would have the pages pinned, we have only the addresses,
 * and a fault there must not end the process that a peer happens to write to.
 */
#include "base/landing.h"
#include "base/live.h"
#include "nic_priv.h"

static inline int touch(void *a, const void *b, uintptr_t c, landing_work *work,
			const void *memory, size_t len_bytes)
{
	uintptr_t start = (uintptr_t)memory;

	return LIKELY(landing_call(a, b, c, work, start, start + len_bytes))
		       ? 0
		       : -EFAULT;
}

static size_t place_far(void *dst, const void *src, uintptr_t len)
{
	live_place(dst, src, len);
	return 1;
}

HOT int touch_place(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	return touch(dst, src, len, place_far, dst, len);
}

/* Arguments of chains, and their requests, have these sizes. */
static size_t copy_far(void *dst, const void *src, uintptr_t len)
{
	switch (len) {
	case 4:
		memcpy(dst, src, 4);
		return 1;
	case 8:
		memcpy(dst, src, 8);
		return 1;
	case 16:
		memcpy(dst, src, 16);
		return 1;
	case 64:
		memcpy(dst, src, 64);
		return 1;
	default:
		memcpy(dst, src, len);
		return 1;
	}
}

HOT int touch_write(uint8_t *dst, const void *src, uint32_t len)
{
	return touch(dst, src, len, copy_far, dst, len);
}

HOT int touch_read(void *dst, const uint8_t *src, uint32_t len)
{
	return touch(dst, src, len, copy_far, src, len);
}

/* Words of queues and tables are read and written whole; areas that overlap
 * end as if they had been copied through a packet. */
static size_t move_far(void *to, const void *from, uintptr_t len)
{
	const uint8_t *src = from;
	uint8_t *dst = to;

	if (LIKELY(len == 8 && ((uintptr_t)dst | (uintptr_t)src) % 8 == 0)) {
		/* TOUCH-1, with what the owner released, or another move: what
		 * is copied after this word is no older than it. */
		uint64_t word = atomic_load_explicit(
			(const _Atomic uint64_t *)from, memory_order_acquire);

		/* TOUCH-1, for who polls the word as well. */
		atomic_store_explicit((_Atomic uint64_t *)to, word,
				      memory_order_release);
	} else if (UNLIKELY(dst < src + len && src < dst + len)) {
		memmove(dst, src, len);
	} else {
		live_place(dst, src, len);
	}
	return 1;
}

HOT int touch_move(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	int err;

	landing_other(src, len);
	err = touch(dst, src, len, move_far, dst, len);
	landing_other(NULL, 0);
	return err;
}

/* Adding nothing is how chains read words of which nobody is to see half; that
 * takes no locked instruction. */
static size_t atomic_far(void *host, const void *arg, uintptr_t original)
{
	const struct atomic_op *op = arg;

	/* TOUCH-1; the other arm is ordered in base/atomic_op.c. */
	*(uint64_t *)original =
		op->is_add && op->swap_add == 0
			? atomic_load_explicit((const _Atomic uint64_t *)host,
					       memory_order_acquire)
			: atomic_op_execute(op, host);
	return 1;
}

HOT int touch_atomic(const struct atomic_op *op, uint8_t *host,
		     uint64_t *original)
{
	return touch(host, op, (uintptr_t)original, atomic_far, host, 8);
}

static size_t stamp_far(void *frame, const void *v, uintptr_t stamp)
{
	return wire_stamp_build((const struct wire_stamp *)stamp, v, frame);
}

HOT size_t touch_stamp(const struct wire_stamp *stamp,
		       const struct wire_vary *v, uint8_t *frame)
{
	uintptr_t start = (uintptr_t)v->payload;

	return landing_call(frame, v, (uintptr_t)stamp, stamp_far, start,
			    start + stamp->payload_len);
}
