/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the source of a walk includes. A walk is a function that looks at one
 * node of a linked structure and says which one comes next; the memory node
 * that has them executes it, see <aquifer/walk.h>.
 *
 *	#include <aquifer/walk_prog.h>
 *
 *	struct node {
 *		uint64_t key, value, next;
 *	};
 *	struct pad {
 *		uint64_t key, value;
 *		uint32_t found;
 *	};
 *
 *	AQ_WALK(find, const struct node *n, struct pad *p)
 *	{
 *		if (n->key == p->key) {
 *			p->value = n->value;
 *			p->found = 1;
 *			return AQ_WALK_DONE;
 *		}
 *		return n->next;
 *	}
 *
 * `aquifer walk build find.c` makes find.walk of it, with clang. The same
 * source compiles for this machine, where find() is a function as any other.
 *
 * The node is what the pointer points to, in place; a pointer is an offset in
 * the region. The pad is what the caller gave and gets back; nothing else lasts
 * from one node to the next. Members are little-endian, at any alignment. A
 * walk that writes to the node needs the right to write, and its atomic
 * operations on 8 aligned bytes are atomic towards everybody:
 * __sync_val_compare_and_swap and __sync_fetch_and_add.
 *
 * A walk has no loops but those that the compiler unrolls (AQ_WALK_EACH), calls
 * nothing that is not inlined (AQ_WALK_INLINE) except memcpy, memset and memcmp
 * of constant lengths, follows no pointer itself, and has no data of its own.
 * `aquifer walk build` says with function and line what cannot be.
 */
#ifndef AQUIFER_WALK_PROG_H
#define AQUIFER_WALK_PROG_H

#ifdef __bpf__
/* There are no system headers for that machine. */
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
#define NULL		 ((void *)0)
#define offsetof(t, m)	 __builtin_offsetof(t, m)
#define AQ_WALK_AT(name) __attribute__((section(name), used))

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
#else
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AQ_WALK_AT(name) __attribute__((unused))
#endif

/* What a walk returns: the pointer to the next node, or one of these. A null
 * pointer ends it, too, so a list needs no test for its end. */
#define AQ_WALK_DONE	   ((uint64_t)0)
#define AQ_WALK_FAIL(code) ((uint64_t)1 << 63 | ((code)&0xff))
/* Where members are declared as C pointers. */
#define AQ_WALK_NEXT(pointer) ((uint64_t)(uintptr_t)(pointer))

/* The beginning of a walk: its name, the node and the pad. Several may stand in
 * one file. */
#define AQ_WALK(name, node, pad)  \
	uint64_t name(node, pad); \
	AQ_WALK_AT("walk/" #name) \
	uint64_t name(node, pad)

/*
 * A walk in two functions: `end` says whether this node is the last one, and
 * takes from it what is wanted; `next` says which one comes after it.
 *
 *	AQ_WALK_INLINE int found(const struct node *n, struct pad *p) { ... }
 *	AQ_WALK_INLINE uint64_t onward(const struct node *n, struct pad *p)
 *	{ ... }
 *	AQ_WALK_ITERATOR(find, found, onward)
 */
#define AQ_WALK_ITERATOR(name, end, next)                                  \
	AQ_WALK_AT("walk.types/" #name)                                    \
	static __typeof__(&next) aq_walk_types_##name;                     \
	AQ_WALK(name, const void *aq_node, void *aq_pad)                   \
	{                                                                  \
		return end((void *)(uintptr_t)aq_node, aq_pad)             \
			       ? AQ_WALK_DONE                              \
			       : next((void *)(uintptr_t)aq_node, aq_pad); \
	}

/*
 * The window is the part of the node that a walk may use; all of it is loaded.
 * Without this line it is what the function uses of the struct that its first
 * parameter points to. With it: `bytes`, which begin `lo` bytes from the
 * pointer, for pointers into the middle of a node (then `lo` is negative) or
 * nodes that go on behind their struct.
 *
 *	AQ_WALK_WINDOW(find, -(int)offsetof(struct node, link),
 *		       sizeof(struct node))
 */
#define AQ_WALK_WINDOW(name, lo, bytes)                                   \
	AQ_WALK_AT("walk.window/" #name)                                  \
	static const struct aq_walk_window aq_walk_window_##name = {(lo), \
								    (bytes)};

struct aq_walk_window {
	int32_t lo;
	uint32_t bytes;
};

/* A function that a walk may call. */
#define AQ_WALK_INLINE static inline __attribute__((always_inline))

/*
 * for (unsigned i = 0; i < count; i++), which is always unrolled: `count` is a
 * constant, and break and continue may depend on anything. What does not change
 * in it is best read into a variable before it.
 *
 * The empty statement keeps clang from joining the test of `i` with one in the
 * body: of a joined test it does not know how often it holds, and it does not
 * unroll.
 */
#ifdef __bpf__
#define AQ_WALK_EACH(i, count)                                                \
	_Pragma("clang loop unroll(full)") for (unsigned i = 0;               \
						i < (count) && ({             \
							__asm__ volatile(""); \
							1;                    \
						});                           \
						i++)
#else
#define AQ_WALK_EACH(i, count) for (unsigned i = 0; i < (count); i++)
#endif

#endif
