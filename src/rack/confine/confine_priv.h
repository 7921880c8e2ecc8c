/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a confinement, one file each. */
#ifndef AQ_CONFINE_PRIV_H
#define AQ_CONFINE_PRIV_H

#include "confine.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif
/* A sanitizer's runtime reads the program's file and, to look for leaks, stops
 * all threads from a process of its own. */
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED 0
#endif

/* Bits by the numbers of linux/capability.h. */
static inline uint64_t confine_capabilities(const struct confine *c)
{
	return (uint64_t)c->packets << 13 | (uint64_t)c->low_port << 10;
}

/* Keeps the capabilities that are permitted now; capability_limit decides. */
int user_become(const char *name) MUST_CHECK;
int user_join(const char *group) MUST_CHECK;
/* No executed program can give this process another capability any more. */
int capability_bound(uint64_t keep) MUST_CHECK;
int capability_limit(uint64_t keep) MUST_CHECK;
/* -EOPNOTSUPP: the kernel has none. */
int landlock_start(const struct confine *c) MUST_CHECK;
int seccomp_start(const struct confine *c) MUST_CHECK;

#endif
