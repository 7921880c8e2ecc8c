/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the question what a machine's cache has. */
#include "held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "coherent/map.h"
#include "coherent/server.h"
#include "shd_priv.h"

enum {
	PATIENCE_MS = 10000,
};

/* ---- the server ---------------------------------------------------------- */

static uint8_t right_at(const struct coh_cache *c, uint32_t i)
{
	return i < c->page_count ? c->pages[i].right : COH_NONE;
}

/* Writes the rows to `out`, if it is not NULL; how many there are. */
static uint32_t list_rows(const struct coh_cache *c, struct shd_held_row *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0, end; i < c->page_count; i = end) {
		uint8_t right = right_at(c, i);

		end = i + 1;
		while (end < c->page_count && right_at(c, end) == right)
			end++;
		if (right == COH_NONE)
			continue;
		if (out)
			out[count] = (struct shd_held_row){
				(c->first_page + i) << COHERENCE_PAGE_SHIFT,
				(uint64_t)(end - i) << COHERENCE_PAGE_SHIFT,
				right == COH_WRITE};
		count++;
	}
	return count;
}

static int write_file(const struct shd_held *h, size_t size_bytes)
{
	int fd = memfd_create("aquifer-held", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (pwrite(fd, h, size_bytes, 0) == (ssize_t)size_bytes)
		return fd;
	(void)close(fd);
	return -EIO;
}

int shd_held_answer(const struct shd *s, const struct shd_program *p)
{
	const struct coh_cache *c = &s->cache;
	const char *wrong = coh_cache_check(c);
	bool is_member = c->link == COH_CACHE_MEMBER && !c->suspended;
	uint32_t count = is_member ? list_rows(c, NULL) : 0;
	size_t size_bytes =
		sizeof(struct shd_held) + count * sizeof(struct shd_held_row);
	struct shd_held *h = calloc(1, size_bytes);
	int fd, err;

	if (!h)
		return shd_attach_answer(p, -ENOMEM, NULL, NULL, 0);
	h->machine = c->machine;
	h->term = c->term;
	h->is_member = is_member;
	h->row_count = count;
	(void)snprintf(h->wrong, sizeof(h->wrong), "%s", wrong ? wrong : "");
	if (count)
		(void)list_rows(c, h->row);
	fd = write_file(h, size_bytes);
	free(h);
	if (fd < 0)
		return shd_attach_answer(p, fd, NULL, NULL, 0);
	err = shd_attach_answer(p, 0, NULL, &fd, 1);
	(void)close(fd);
	return err;
}

/* ---- who asks ------------------------------------------------------------ */

static int read_file(int fd, struct shd_held **out)
{
	struct stat st;
	struct shd_held *h;
	size_t size_bytes;

	if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(*h))
		return error_set(-EPROTO, "the cache server says nonsense");
	size_bytes = (size_t)st.st_size;
	h = calloc(1, size_bytes);
	if (!h)
		return error_set(-ENOMEM, "no memory");
	if (pread(fd, h, size_bytes, 0) != (ssize_t)size_bytes ||
	    h->row_count >
		    (size_bytes - sizeof(*h)) / sizeof(struct shd_held_row)) {
		free(h);
		return error_set(-EPROTO, "the cache server says nonsense");
	}
	h->wrong[sizeof(h->wrong) - 1] = '\0';
	*out = h;
	return 0;
}

int shd_held_ask(const char *rack, struct shd_held **out)
{
	struct coherent_ask ask = {.kind = COHERENT_HELD};
	struct coherent_answer a;
	unsigned count = 0;
	int sock, fd = -1, err = coherent_server_find(rack, &sock);

	*out = NULL;
	if (err)
		return err == -ENOENT ? 0 : err;
	err = coherent_question(sock, &ask, PATIENCE_MS, &a, &fd, 1, &count);
	(void)close(sock);
	if (!err)
		err = count ? read_file(fd, out)
			    : error_set(-EPROTO, "the cache server sends no "
						 "file");
	if (fd >= 0)
		(void)close(fd);
	return err;
}
