/* SPDX-License-Identifier: Apache-2.0 */
/* The program's half of attaching to the cache server. */
#include "attach.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "map.h"
#include "server.h"

enum {
	TRIES = 3,
};

int coherent_ask(const struct coherent_mapping *m, enum coherent_ask_kind kind,
		 uint64_t va, uint64_t size_bytes, struct coherent_answer *out)
{
	struct coherent_ask ask = {
		.kind = kind, .va = va, .size_bytes = size_bytes};
	unsigned count;

	return coherent_question(m->sock, &ask, -1, out, NULL, 0, &count);
}

int coherent_attach(const char *rack, const struct coherent_segment *g,
		    bool may_write, struct coherent_mapping *out)
{
	struct coherent_range r = {.va = g->va,
				   .reserved_bytes = g->reserved_bytes,
				   .id = g->id,
				   .at = g->va,
				   .size_bytes = g->size_bytes,
				   .prot = may_write ? PROT_READ | PROT_WRITE
						     : PROT_READ};
	int sock, err = -EHOSTDOWN;

	/* A server that nobody uses ends, and may do so right now. */
	for (unsigned i = 0; i < TRIES && err == -EHOSTDOWN; i++) {
		err = coherent_server_connect(rack, &sock);
		if (err)
			return err;
		err = coherent_map(sock, &r);
		if (err)
			(void)close(sock);
	}
	if (!err)
		*out = (struct coherent_mapping){
			.sock = sock, .va = g->va, .size_bytes = g->size_bytes};
	return err;
}

void coherent_detach(struct coherent_mapping *m)
{
	/* Fails only if it is not mapped. */
	(void)munmap((void *)(uintptr_t)m->va, m->size_bytes);
	(void)close(m->sock);
}
