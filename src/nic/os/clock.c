/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether the TSC can be trusted and how fast it runs. */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#ifdef __x86_64__
static bool kernel_uses_tsc(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/"
		"current_clocksource";
	char name[16] = "";
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	return n >= 3 && memcmp(name, "tsc", 3) == 0 &&
	       (name[3] == '\n' || name[3] == '\0');
}

static bool tsc_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) &&
	       kernel_uses_tsc();
}

/* A pair of readings of both clocks, as close together as five tries give. */
static void read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < 5; i++) {
		uint64_t before = __builtin_ia32_rdtsc();
		uint64_t t = clock_mono_ns();
		uint64_t after = __builtin_ia32_rdtsc();

		if (after - before < best) {
			best = after - before;
			*tsc = before + (after - before) / 2;
			*ns = t;
		}
	}
}
#endif

void os_clock_init(struct os_clock *c)
{
	*c = (struct os_clock){0};
#ifdef __x86_64__
	static const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t tsc, ns;

	if (!tsc_is_invariant())
		return;
	read_both(&c->base_tsc, &c->base_ns);
	nanosleep(&nap, NULL);
	read_both(&tsc, &ns);
	if (tsc <= c->base_tsc || ns <= c->base_ns)
		return;
	c->ns_per_tick_32 =
		(uint64_t)(((unsigned __int128)(ns - c->base_ns) << 32) /
			   (tsc - c->base_tsc));
#endif
}
