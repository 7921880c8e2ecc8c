/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of pcap files; the writer is in os/. */
#include "pcap_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "phy.h"

enum {
	FILE_HEADER_BYTES = 24,
	FRAME_HEADER_BYTES = 16,
	LINKTYPE_ETHERNET = 1,
	VERSION_MAJOR = 2,
	ETHERNET_HEADER_BYTES = 14,
	NS_PER_US = 1000,
};

#define NS_PER_S UINT64_C(1000000000)
#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du

/* How the numbers of this file are written. */
struct form {
	bool swapped; /* big-endian */
	uint32_t fraction_ns;
};

static uint32_t u32_at(const struct form *f, const uint8_t *p)
{
	le32 v;

	memcpy(&v, p, sizeof(v));
	return f->swapped ? __builtin_bswap32(le32_get(v)) : le32_get(v);
}

static int parse_header(const char *name, const uint8_t *p, size_t len,
			struct form *f)
{
	uint32_t magic, version, link;

	if (len < FILE_HEADER_BYTES)
		return error_set(-EBADMSG,
				 "%s: cut off at offset %zu, inside the file "
				 "header of %d bytes",
				 name, len, FILE_HEADER_BYTES);
	*f = (struct form){.swapped = false};
	magic = u32_at(f, p);
	if (magic == __builtin_bswap32(MAGIC_US) ||
	    magic == __builtin_bswap32(MAGIC_NS)) {
		f->swapped = true;
		magic = __builtin_bswap32(magic);
	}
	if (magic != MAGIC_US && magic != MAGIC_NS)
		return error_set(-EBADMSG,
				 "%s: offset 0: 0x%08x is not the magic number "
				 "of a pcap file (pcapng is not read)",
				 name, magic);
	f->fraction_ns = magic == MAGIC_NS ? 1 : NS_PER_US;
	/* Two halves of a word, in the file's order. */
	version = u32_at(f, p + 4);
	version = f->swapped ? version >> 16 : version & 0xffff;
	if (version != VERSION_MAJOR)
		return error_set(-EBADMSG, "%s: offset 4: version %u, not %d",
				 name, version, VERSION_MAJOR);
	/* The upper half may hold the length of an FCS. */
	link = u32_at(f, p + 20) & 0xffff;
	if (link != LINKTYPE_ETHERNET)
		return error_set(-EPROTONOSUPPORT,
				 "%s: offset 20: link type %u, only Ethernet "
				 "(%d) is read",
				 name, link, LINKTYPE_ETHERNET);
	return 0;
}

static int parse_frame(const char *name, const struct form *f,
		       const uint8_t *bytes, size_t len, size_t at,
		       struct edm_pcap_frame *out)
{
	const uint8_t *p = bytes + at;
	uint32_t captured, original, fraction;

	if (len - at < FRAME_HEADER_BYTES)
		return error_set(-EBADMSG,
				 "%s: cut off at offset %zu, inside the header "
				 "of the frame at offset %zu",
				 name, len, at);
	fraction = u32_at(f, p + 4);
	captured = u32_at(f, p + 8);
	original = u32_at(f, p + 12);
	if (fraction >= NS_PER_S / f->fraction_ns)
		return error_set(-EBADMSG,
				 "%s: offset %zu: %u is no part of a second",
				 name, at + 4, fraction);
	if (captured < ETHERNET_HEADER_BYTES)
		return error_set(-EBADMSG,
				 "%s: offset %zu: a frame of %u bytes has no "
				 "Ethernet header",
				 name, at + 8, captured);
	if (captured > EDM_FRAME_MAX)
		return error_set(-EMSGSIZE,
				 "%s: offset %zu: a frame of %u bytes; at most "
				 "%d go over the link",
				 name, at + 8, captured, EDM_FRAME_MAX);
	if (captured != original)
		return error_set(-EBADMSG,
				 "%s: offset %zu: only %u of the frame's %u "
				 "bytes were captured",
				 name, at + 8, captured, original);
	if (captured > len - at - FRAME_HEADER_BYTES)
		return error_set(-EBADMSG,
				 "%s: cut off at offset %zu, inside the frame "
				 "at offset %zu",
				 name, len, at);
	*out = (struct edm_pcap_frame){
		.offset = at + FRAME_HEADER_BYTES,
		.time_ns = u32_at(f, p) * NS_PER_S +
			   (uint64_t)fraction * f->fraction_ns,
		.len_bytes = captured,
	};
	return 0;
}

static int frames_grow(struct edm_pcap *p, uint32_t *room)
{
	struct edm_pcap_frame *more;

	if (p->frames < *room)
		return 0;
	*room = *room ? 2 * *room : 64;
	more = realloc(p->frame, *room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->frame = more;
	return 0;
}

int edm_pcap_parse(const char *name, const uint8_t *bytes, size_t len_bytes,
		   struct edm_pcap *out)
{
	struct edm_pcap p = {.len_bytes = len_bytes};
	size_t at = FILE_HEADER_BYTES;
	uint32_t room = 0;
	struct form f;
	int err = parse_header(name, bytes, len_bytes, &f);

	while (!err && at < len_bytes) {
		if (p.frames == EDM_PCAP_FRAMES_MAX) {
			err = error_set(-EMSGSIZE,
					"%s: offset %zu: more than %d frames",
					name, at, EDM_PCAP_FRAMES_MAX);
			break;
		}
		err = frames_grow(&p, &room);
		if (err)
			break;
		err = parse_frame(name, &f, bytes, len_bytes, at,
				  &p.frame[p.frames]);
		if (err)
			break;
		at += FRAME_HEADER_BYTES + p.frame[p.frames++].len_bytes;
	}
	if (err) {
		free(p.frame);
		return err;
	}
	*out = p;
	return 0;
}

static int file_bytes(const char *path, FILE *file, uint8_t **bytes,
		      size_t *len_bytes)
{
	uint8_t *buf = NULL, *more;
	size_t room = 1 << 16, n = 0, got;

	for (;; room *= 2) {
		if (room > EDM_PCAP_BYTES_MAX) {
			free(buf);
			return error_set(-EMSGSIZE, "%s: longer than %d bytes",
					 path, EDM_PCAP_BYTES_MAX);
		}
		more = realloc(buf, room);
		if (!more) {
			free(buf);
			return -ENOMEM;
		}
		buf = more;
		got = fread(buf + n, 1, room - n, file);
		n += got;
		if (n < room)
			break;
	}
	if (ferror(file)) {
		free(buf);
		return error_set(-EIO, "%s: cannot be read", path);
	}
	*bytes = buf;
	*len_bytes = n;
	return 0;
}

int edm_pcap_read(const char *path, struct edm_pcap *out)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *bytes = NULL;
	size_t len_bytes = 0;
	int err;

	if (!file) {
		err = -errno;
		return error_set(err, "%s: %s", path, error_text(err));
	}
	err = file_bytes(path, file, &bytes, &len_bytes);
	fclose(file);
	if (err)
		return err;
	err = edm_pcap_parse(path, bytes, len_bytes, out);
	if (err) {
		free(bytes);
		return err;
	}
	out->bytes = bytes;
	return 0;
}

void edm_pcap_release(struct edm_pcap *p)
{
	free(p->bytes);
	free(p->frame);
	memset(p, 0, sizeof(*p));
}
