/* SPDX-License-Identifier: Apache-2.0 */
/* The env of a daemon: only what its core needs, not what a NIC does. */
#include <errno.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/relax.h"
#include "daemon.h"

static uint64_t now_ns(struct env *env)
{
	return clock_mono_ns();
}

static void random_bytes(struct env *env, void *buf, size_t len_bytes)
{
	uint8_t *p = buf;

	while (len_bytes) {
		ssize_t n = getrandom(p, len_bytes, 0);

		if (n < 0) {
			ASSERT(errno == EINTR);
			continue;
		}
		p += n;
		len_bytes -= (size_t)n;
	}
}

static void relax(struct env *env)
{
	relax_briefly();
}

const struct env_ops daemon_env_ops = {
	.now_ns = now_ns,
	.random = random_bytes,
	.relax = relax,
};
