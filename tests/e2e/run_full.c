/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose far memory is full or goes: run_full SCENARIO MIB. It says
 * "ready" once its memory is filled, and goes on with the next line of input.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE_WORDS = 512,
	MIB = 1 << 20,
};

#define FIXED_AT ((void *)0x100000000)

static sigjmp_buf out;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static uint64_t *map(size_t bytes, void *at)
{
	void *mem =
		mmap(at, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static uint64_t word(size_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

static void fill(volatile uint64_t *mem, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i++)
		mem[i] = word(i);
}

/* Without buffers, which are memory that may be gone. */
static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(5);
}

static void wait_line(void)
{
	char byte;

	say("ready\n");
	if (read(STDIN_FILENO, &byte, 1) < 0)
		_exit(5);
}

static int is_right(const volatile uint64_t *mem, size_t page)
{
	for (size_t i = page * PAGE_WORDS; i < (page + 1) * PAGE_WORDS; i++)
		if (mem[i] != word(i))
			return 0;
	return 1;
}

static volatile size_t at_page, bus, right, wrong;

/* What has become of each page. */
static void look_at_all(const uint64_t *mem, size_t pages)
{
	bus = right = wrong = 0;
	for (at_page = 0; at_page < pages; at_page++) {
		if (sigsetjmp(out, 1))
			bus++;
		else if (is_right(mem, at_page))
			right++;
		else
			wrong++;
	}
}

/*
 * Each page is what it was or SIGBUS, and new memory works. What leaves between
 * the death of a node and the moment in which this machine hears of it is lost
 * with the node; so who is to lose pages looks until some are gone before it
 * takes new ones.
 */
static int play_bus(size_t bytes, int until_lost)
{
	struct sigaction sa = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};
	uint64_t *mem = map(bytes, NULL), *more;
	size_t pages = bytes / 8 / PAGE_WORDS;
	char text[80];

	fill(mem, bytes);
	wait_line();
	(void)sigaction(SIGBUS, &sa, NULL);
	do
		look_at_all(mem, pages);
	while (until_lost && !bus && !wrong);
	(void)signal(SIGBUS, SIG_DFL);
	more = map(bytes, NULL);
	fill(more, bytes);
	for (size_t i = 0; i < pages; i++)
		wrong += !is_right(more, i);
	(void)snprintf(text, sizeof(text), "bus %zu right %zu wrong %zu\n", bus,
		       right, wrong);
	say(text);
	return wrong != 0;
}

/* Memory that is not far where it is not far memory's to give. */
static int play_hold(size_t bytes)
{
	uint64_t *mem = malloc(bytes);

	fill(mem, bytes);
	wait_line();
	return !is_right(mem, 0);
}

static int play_fixed(size_t bytes)
{
	uint64_t *mem = map(bytes, FIXED_AT);

	fill(mem, bytes);
	wait_line();
	return !is_right(mem, 0);
}

/* Asks for more until it is told that there is no more; what it has stays. */
static int play_ask(size_t bytes)
{
	uint64_t *mem[1024];
	unsigned n = 0;

	while (n < bytes / MIB && n < 1024) {
		mem[n] = map(MIB / 4, NULL);
		if (!mem[n])
			break;
		fill(mem[n++], MIB / 4);
	}
	if (n == bytes / MIB || errno != ENOMEM)
		return 4;
	for (unsigned i = 0; i < n; i++)
		for (unsigned page = 0; page < 64; page++)
			if (!is_right(mem[i], page))
				return 3;
	say("told\n");
	return 0;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? (size_t)atoi(argv[2]) * MIB : 0;

	if (!bytes)
		return 2;
	if (strcmp(argv[1], "bus") == 0)
		return play_bus(bytes, 0);
	if (strcmp(argv[1], "lost") == 0)
		return play_bus(bytes, 1);
	if (strcmp(argv[1], "hold") == 0)
		return play_hold(bytes);
	if (strcmp(argv[1], "fixed") == 0)
		return play_fixed(bytes);
	return strcmp(argv[1], "ask") == 0 ? play_ask(bytes) : 2;
}
