/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nbdkit plugin: `nbdkit aquifer size=16G`. One disk for all connections;
 * nbdkit hands requests over one at a time, because the disk has one owner.
 * Nothing with threads may exist before nbdkit has forked, so the rack is
 * opened in after_fork; a child has tried it before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "aquifer/aquifer.h"
#include "disk.h"
#include "pin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS

enum {
	BLOCK_BYTES = 4096,
	BLOCK_MAX = 32 << 20,
	COPIES_MAX = 4,
	/* A machine that swaps may stand still for long, and then its pages
	 * must still be there. Shorter than the kernel waits for us. */
	SWAP_PATIENCE_MS = 30000,
};

/* nbdkit's interface has no place for a plugin's own state before open. */
static struct {
	struct nbd_disk_options options;
	struct nbd_disk *disk;
	bool is_swap; /* of this machine */
	bool is_strict;
} plugin = {.options = {.name = "nbd"}};

static int config_size(const char *value)
{
	int64_t size = nbdkit_parse_size(value);

	if (size <= 0) {
		nbdkit_error("size: '%s' is no size", value);
		return -1;
	}
	if (size % BLOCK_BYTES) {
		nbdkit_error("size: a disk consists of pages of %d bytes; %lld "
			     "bytes are not whole pages, the next size is %lld",
			     BLOCK_BYTES, (long long)size,
			     (long long)align_up((uint64_t)size, BLOCK_BYTES));
		return -1;
	}
	plugin.options.size_bytes = (uint64_t)size;
	return 0;
}

static int config_copies(const char *value)
{
	if (nbdkit_parse_unsigned("copies", value, &plugin.options.copies) != 0)
		return -1;
	if (plugin.options.copies - 1 < COPIES_MAX)
		return 0;
	nbdkit_error("copies: a number from 1 to %d", COPIES_MAX);
	return -1;
}

static int config_bool(const char *value, bool *to)
{
	int is_true = nbdkit_parse_bool(value);

	*to = is_true > 0;
	return is_true < 0 ? -1 : 0;
}

static int plugin_config(const char *key, const char *value)
{
	if (strcmp(key, "size") == 0)
		return config_size(value);
	if (strcmp(key, "copies") == 0)
		return config_copies(value);
	if (strcmp(key, "swap") == 0)
		return config_bool(value, &plugin.is_swap);
	if (strcmp(key, "strict") == 0)
		return config_bool(value, &plugin.is_strict);
	if (strcmp(key, "rack") == 0)
		plugin.options.rack = value;
	else if (strcmp(key, "name") == 0)
		plugin.options.name = value;
	else if (strcmp(key, "mode") == 0)
		plugin.options.mode = value;
	else {
		nbdkit_error("there is no parameter '%s'", key);
		return -1;
	}
	return 0;
}

static int plugin_config_complete(void)
{
	if (plugin.options.size_bytes)
		return 0;
	nbdkit_error("size=SIZE is missing: size=16G");
	return -1;
}

/* Memory is promised to nobody before it is written, so a disk may be larger
 * than the rack, as files may be sparse; but nobody should learn that from a
 * file system that fails. */
static int check_room(void)
{
	uint64_t size = nbd_disk_size(plugin.disk);
	uint64_t room = nbd_disk_room(plugin.disk);

	if (size <= room)
		return 0;
	nbdkit_error("%sthe disk has %lluM, and the nodes have room for %lluM "
		     "of it now (a node gives one disk half of what it has "
		     "left); writes beyond that fail with 'no space'%s",
		     plugin.is_strict ? "strict=true: " : "warning: ",
		     (unsigned long long)size >> 20,
		     (unsigned long long)room >> 20,
		     plugin.is_strict ? ""
				      : "; strict=true refuses such a "
					"disk");
	return plugin.is_strict ? -1 : 0;
}

static int open_disk(void)
{
	int err = nbd_disk_open(&plugin.options, &plugin.disk);

	if (!err)
		return 0;
	nbdkit_error("%s",
		     aq_last_error()[0] ? aq_last_error() : aq_strerror(err));
	return -1;
}

static void plugin_unload(void)
{
	nbd_disk_close(plugin.disk);
	plugin.disk = NULL;
}

static void try_disk(void)
{
	int err = open_disk();

	/* The server itself warns. */
	if (!err && plugin.is_strict)
		err = check_room();
	plugin_unload();
	_exit(err ? 1 : 0);
}

/* Whoever has started nbdkit does not hear of what fails after it has forked,
 * and the command of --run would wait for the server for ever. So a child tries
 * everything before. */
static int plugin_get_ready(void)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0) {
		nbdkit_error("cannot fork: %s", strerror(errno));
		return -1;
	}
	if (child == 0)
		try_disk();
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int plugin_after_fork(void)
{
	const char *what;
	int err;

	if (plugin.is_swap) {
		plugin.options.patience_ms = SWAP_PATIENCE_MS;
		err = nbd_pin(&what);
		if (err) {
			nbdkit_error("swap=true: the server cannot %s: %s",
				     what, strerror(-err));
			return -1;
		}
	}
	return open_disk() ? -1 : check_room();
}

static void *plugin_open(int readonly)
{
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t plugin_get_size(void *handle)
{
	return (int64_t)nbd_disk_size(plugin.disk);
}

static int plugin_block_size(void *handle, uint32_t *minimum,
			     uint32_t *preferred, uint32_t *maximum)
{
	*minimum = 1;
	*preferred = BLOCK_BYTES;
	*maximum = BLOCK_MAX;
	return 0;
}

static int yes(void *handle)
{
	return 1;
}

static int no(void *handle)
{
	return 0;
}

/* Where room is given out once and for all, there is none to give back: a
 * trimmed page would read as zeros, and that is what "zero" is for. */
static int plugin_can_trim(void *handle)
{
	return nbd_disk_gives_back(plugin.disk);
}

/* Memory: what is written is as durable at once as it will ever be. */
static int plugin_can_fua(void *handle)
{
	return NBDKIT_FUA_NATIVE;
}

static int plugin_flush(void *handle, uint32_t flags)
{
	return 0;
}

static int end(int err, const char *what, uint64_t offset)
{
	const char *node;

	if (!err)
		return 0;
	node = nbd_disk_lost_node(plugin.disk);
	if (node)
		nbdkit_error("%s at %llu: memory node %s is lost", what,
			     (unsigned long long)offset, node);
	else
		nbdkit_error("%s at %llu: %s", what, (unsigned long long)offset,
			     aq_strerror(err));
	nbdkit_set_error(err == -ENOSPC || err == -EDQUOT ? ENOSPC : EIO);
	return -1;
}

static int plugin_pread(void *handle, void *buf, uint32_t count,
			uint64_t offset, uint32_t flags)
{
	return end(nbd_disk_read(plugin.disk, buf, count, offset), "read",
		   offset);
}

static int plugin_pwrite(void *handle, const void *buf, uint32_t count,
			 uint64_t offset, uint32_t flags)
{
	return end(nbd_disk_write(plugin.disk, buf, count, offset), "write",
		   offset);
}

static int plugin_trim(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	return end(nbd_disk_zero(plugin.disk, count, offset), "trim", offset);
}

static int plugin_zero(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	return end(nbd_disk_zero(plugin.disk, count, offset), "zero", offset);
}

static int plugin_extents(void *handle, uint32_t count, uint64_t offset,
			  uint32_t flags, struct nbdkit_extents *extents)
{
	uint64_t stop = offset + count;

	while (offset < stop) {
		bool is_hole;
		uint64_t n = nbd_disk_extent(plugin.disk, offset, stop - offset,
					     &is_hole);

		if (nbdkit_add_extent(extents, offset, n,
				      is_hole ? NBDKIT_EXTENT_HOLE |
							NBDKIT_EXTENT_ZERO
					      : 0) != 0)
			return -1;
		offset += n;
	}
	return 0;
}

#define plugin_config_help                                  \
	"size=SIZE    (required) of the disk, e.g. 16G\n"   \
	"rack=RACK    the rack to use\n"                    \
	"copies=N     of every page, on different nodes\n"  \
	"mode=MODE    how the nodes find room for a page\n" \
	"swap=true    for swap of this machine: locked\n"   \
	"strict=true  no disk larger than there is room\n"  \
	"name=NAME    what the nodes call it (default nbd)\n"

static struct nbdkit_plugin aquifer_plugin = {
	.name = "aquifer",
	.longname = "memory of an Aquifer rack",
	.description = "A disk whose pages are in the memory of other machines",
	.config = plugin_config,
	.config_complete = plugin_config_complete,
	.config_help = plugin_config_help,
	.magic_config_key = "size",
	.get_ready = plugin_get_ready,
	.after_fork = plugin_after_fork,
	.unload = plugin_unload,
	.open = plugin_open,
	.get_size = plugin_get_size,
	.block_size = plugin_block_size,
	.can_write = yes,
	.can_flush = yes,
	.can_fua = plugin_can_fua,
	.can_trim = plugin_can_trim,
	.can_zero = yes,
	.can_fast_zero = yes,
	.can_extents = yes,
	.can_multi_conn = yes,
	.is_rotational = no,
	.pread = plugin_pread,
	.pwrite = plugin_pwrite,
	.flush = plugin_flush,
	.trim = plugin_trim,
	.zero = plugin_zero,
	.extents = plugin_extents,
};

NBDKIT_REGISTER_PLUGIN(aquifer_plugin)
