/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the agent, in a thread of the program. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"
#include "preload_raw.h"

enum {
	AGENT_STACK_BYTES = 16384,
	AGENT_TLS_BYTES = 4096, /* for instrumented code that looks at it */
};

/* clone returns twice; in the child on the new stack, where no frame of ours
 * is, so the child's path must be here. */
static long clone_agent(unsigned long flags, void *stack_top, void *tls,
			struct preload *p)
{
	register void *r8 __asm__("r8") = tls;
	register long r10 __asm__("r10") = 0;
	register struct preload *r12 __asm__("r12") = p;
	long ret;

	__asm__ __volatile__("syscall\n\t"
			     "test %%rax, %%rax\n\t"
			     "jnz 1f\n\t"
			     "xor %%ebp, %%ebp\n\t"
			     "mov %%r12, %%rdi\n\t"
			     "call preload_agent_main\n\t"
			     "hlt\n"
			     "1:"
			     : "=a"(ret)
			     : "a"(SYS_clone), "D"(flags), "S"(stack_top),
			       "d"(0), "r"(r10), "r"(r8), "r"(r12)
			     : "rcx", "r11", "memory");
	return ret;
}

static uint64_t parse_number(const char **text)
{
	uint64_t v = 0;

	while (**text == ' ')
		(*text)++;
	for (; **text >= '0' && **text <= '9'; (*text)++)
		v = v * 10 + (uint64_t)(**text - '0');
	return v;
}

/* A number that is nobody's, out of the upper quarter of those that there are
 * here (uid_map(5): "first outside count" in each line); UINT32_MAX: there is
 * no choice, and so none for the program. */
static uint32_t pick_id(const char *map)
{
	char text[512] = "0 0 4294967295\n";
	int fd = open(map, O_RDONLY | O_CLOEXEC);
	uint64_t first = 0, count = 0, random;
	uint32_t id;

	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text) - 1);

		if (n > 0)
			text[n] = '\0';
		(void)close(fd);
	}
	for (const char *at = text; *at; at++) {
		uint64_t start = parse_number(&at), n;

		(void)parse_number(&at);
		n = parse_number(&at);
		if (n > count) {
			first = start;
			count = n;
		}
		if (!*at)
			break;
	}
	if (count < 4 || getrandom(&random, sizeof(random), 0) < 0)
		return UINT32_MAX;
	id = (uint32_t)(first + count - 1 - random % (count / 4));
	return id == 65534 ? id - 1 : id; /* where strangers are shown */
}

/* G1 */
static void await_bare(struct preload *p)
{
	while (!atomic_load_explicit(&p->agent_is_bare, memory_order_acquire))
		(void)raw6(SYS_futex, (long)&p->agent_is_bare,
			   FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}

int preload_agent_start(struct preload *p)
{
	size_t bytes = AGENT_STACK_BYTES + AGENT_TLS_BYTES;
	uint8_t *mem = preload_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t all = ~0ull, old;
	uint8_t *tls = mem + AGENT_STACK_BYTES;
	long tid;

	if (mem == MAP_FAILED)
		return -ENOMEM;
	p->agent_uid = pick_id("/proc/self/uid_map");
	p->agent_gid = pick_id("/proc/self/gid_map");
	atomic_store_explicit(&p->agent_is_bare, 0, memory_order_relaxed);
	*(void **)(void *)tls = tls; /* what fs:0 has to be */
	*(void **)(void *)(tls + 16) = tls;
	/* The agent inherits the mask: all signals are the program's. */
	(void)raw6(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&all,
		   (long)&old, 8, 0, 0);
	tid = clone_agent(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				  CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS,
			  mem + AGENT_STACK_BYTES, tls, p);
	(void)raw6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&old, 0, 8, 0,
		   0);
	if (tid < 0) {
		(void)preload_sys_munmap(mem, bytes);
		return (int)tid;
	}
	await_bare(p);
	return 0;
}
