/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sockets, and where their defaults come from. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rs_priv.h"

#define CONFIG_DIR "/etc/rdma/rsocket/"

/* ---- defaults ------------------------------------------------------------ */

static uint32_t clamp(int64_t v, uint32_t least, uint32_t most)
{
	if (v < (int64_t)least)
		return least;
	return v > (int64_t)most ? most : (uint32_t)v;
}

/* Halves of a ring begin at cache lines. */
static uint32_t buffer_size(int64_t v)
{
	return (uint32_t)align_up(clamp(v, RS_BUF_MIN, RS_BUF_MAX),
				  2 * CACHE_LINE);
}

/* A file with one number, as rdma-core has them; else `value`. */
static int64_t configured(const char *path, int64_t value)
{
	FILE *f = fopen(path, "re");
	long found;

	if (!f)
		return value;
	if (fscanf(f, "%ld", &found) == 1)
		value = found;
	fclose(f);
	return value;
}

void rs_options_default(struct rs_options *opt)
{
	*opt = (struct rs_options){
		.sndbuf = buffer_size(
			configured(CONFIG_DIR "wmem_default", RS_BUF_DEFAULT)),
		.rcvbuf = buffer_size(
			configured(CONFIG_DIR "mem_default", RS_BUF_DEFAULT)),
		.sq_size = clamp(configured(CONFIG_DIR "sqsize_default",
					    RS_QUEUE_DEFAULT),
				 RS_QUEUE_MIN, RS_QUEUE_MAX),
		.rq_size = clamp(configured(CONFIG_DIR "rqsize_default",
					    RS_QUEUE_DEFAULT),
				 RS_QUEUE_MIN, RS_QUEUE_MAX),
		.inline_size = clamp(configured(CONFIG_DIR "inline_default",
						RS_INLINE_DEFAULT),
				     0, RS_INLINE_MAX),
		.iomap_count = clamp(configured(CONFIG_DIR "iomap_size", 0), 0,
				     RS_IOMAP_MAX),
		.send_timeout_ns = RS_FOREVER,
		.recv_timeout_ns = RS_FOREVER,
		.keepidle = 7200,
	};
}

/* ---- which integer an option is ------------------------------------------ */

static int *flag_of(struct rs_options *opt, int level, int name)
{
	if (level == SOL_SOCKET) {
		switch (name) {
		case SO_REUSEADDR:
			return &opt->reuseaddr;
		case SO_KEEPALIVE:
			return &opt->keepalive;
		case SO_OOBINLINE:
			return &opt->oobinline;
		}
	} else if (level == IPPROTO_TCP) {
		switch (name) {
		case TCP_NODELAY:
			return &opt->nodelay;
		case TCP_KEEPIDLE:
			return &opt->keepidle;
		case TCP_MAXSEG:
			return &opt->maxseg;
		}
	} else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
		return &opt->v6only;
	}
	return NULL;
}

static uint32_t *size_of(struct rs_options *opt, int level, int name,
			 uint32_t *least, uint32_t *most)
{
	*least = RS_BUF_MIN;
	*most = RS_BUF_MAX;
	if (level == SOL_SOCKET && name == SO_SNDBUF)
		return &opt->sndbuf;
	if (level == SOL_SOCKET && name == SO_RCVBUF)
		return &opt->rcvbuf;
	if (level != SOL_RDMA)
		return NULL;
	*least = RS_QUEUE_MIN;
	*most = RS_QUEUE_MAX;
	switch (name) {
	case RDMA_SQSIZE:
		return &opt->sq_size;
	case RDMA_RQSIZE:
		return &opt->rq_size;
	case RDMA_INLINE:
		*least = 0;
		*most = RS_INLINE_MAX;
		return &opt->inline_size;
	case RDMA_IOMAPSIZE:
		*least = 0;
		*most = RS_IOMAP_MAX;
		return &opt->iomap_count;
	}
	return NULL;
}

static uint64_t *timeout_of(struct rs_options *opt, int level, int name)
{
	if (level != SOL_SOCKET)
		return NULL;
	if (name == SO_SNDTIMEO)
		return &opt->send_timeout_ns;
	return name == SO_RCVTIMEO ? &opt->recv_timeout_ns : NULL;
}

/* ---- setting ------------------------------------------------------------- */

static int set_timeout(uint64_t *timeout_ns, const void *val, socklen_t len)
{
	struct timeval tv;

	if (len < sizeof(tv))
		return EINVAL;
	memcpy(&tv, val, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return EDOM;
	*timeout_ns = tv.tv_sec < 0 || (!tv.tv_sec && !tv.tv_usec)
			      ? RS_FOREVER
			      : (uint64_t)tv.tv_sec * 1000000000ull +
					(uint64_t)tv.tv_usec * 1000ull;
	return 0;
}

static int set_linger(struct rs_options *opt, const void *val, socklen_t len)
{
	struct linger l;

	if (len < sizeof(l))
		return EINVAL;
	memcpy(&l, val, sizeof(l));
	if (l.l_linger < 0)
		return EINVAL;
	opt->linger = l;
	return 0;
}

static int set_option(struct rsock *rs, int level, int name, const void *val,
		      socklen_t len)
{
	uint64_t *timeout = timeout_of(&rs->opt, level, name);
	int *flag = flag_of(&rs->opt, level, name);
	uint32_t least, most;
	uint32_t *size = size_of(&rs->opt, level, name, &least, &most);
	int v;

	if (timeout)
		return set_timeout(timeout, val, len);
	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(&rs->opt, val, len);
	if (!flag && !size)
		return level == SOL_RDMA ? EOPNOTSUPP : ENOPROTOOPT;
	if (len < sizeof(v))
		return EINVAL;
	memcpy(&v, val, sizeof(v));
	if (flag == &rs->opt.v6only && rs->domain != AF_INET6)
		return ENOPROTOOPT;
	if (flag == &rs->opt.keepidle && (v < 1 || v > 32767))
		return EINVAL;
	if (flag) {
		*flag = flag == &rs->opt.keepidle || flag == &rs->opt.maxseg
				? v
				: v != 0;
		return 0;
	}
	if (v < 0)
		return EINVAL;
	/* Memory and queues of a connection are made once. */
	if (rs->state == RS_CONNECTING || rs->state == RS_CONNECTED)
		return level == SOL_RDMA && name != RDMA_INLINE ? EISCONN : 0;
	*size = most == RS_BUF_MAX ? buffer_size(v) : clamp(v, least, most);
	return 0;
}

RS_EXPORT int rsetsockopt(int socket, int level, int optname,
			  const void *optval, socklen_t optlen)
{
	struct rsock *rs = rs_get(socket);
	int err;

	if (!rs)
		return -1;
	err = optval ? set_option(rs, level, optname, optval, optlen) : EFAULT;
	if (!err && rs->id && level == SOL_SOCKET && optname == SO_REUSEADDR &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
			    &rs->opt.reuseaddr, sizeof(int)))
		err = errno;
	rs_leave(rs);
	return err ? rs_fail(err) : 0;
}

/* ---- asking -------------------------------------------------------------- */

static int give(const void *from, size_t bytes, void *val, socklen_t *len)
{
	if (*len > bytes)
		*len = (socklen_t)bytes;
	memcpy(val, from, *len);
	return 0;
}

static int give_int(int v, void *val, socklen_t *len)
{
	return give(&v, sizeof(v), val, len);
}

static int give_timeout(uint64_t ns, void *val, socklen_t *len)
{
	struct timeval tv = {0};

	if (ns != RS_FOREVER) {
		tv.tv_sec = (time_t)(ns / 1000000000ull);
		tv.tv_usec = (suseconds_t)(ns % 1000000000ull / 1000);
	}
	return give(&tv, sizeof(tv), val, len);
}

static int get_state(struct rsock *rs, int name, void *val, socklen_t *len)
{
	int v;

	switch (name) {
	case SO_ERROR:
		(void)rs_progress(rs);
		v = rs->so_error;
		rs->so_error = 0;
		return give_int(v, val, len);
	case SO_TYPE:
		return give_int(rs->type, val, len);
	case SO_DOMAIN:
		return give_int(rs->domain, val, len);
	case SO_PROTOCOL:
		return give_int(rs->type == SOCK_STREAM ? IPPROTO_TCP
							: IPPROTO_UDP,
				val, len);
	case SO_ACCEPTCONN:
		return give_int(rs->state == RS_LISTENING, val, len);
	case SO_LINGER:
		return give(&rs->opt.linger, sizeof(rs->opt.linger), val, len);
	}
	return ENOPROTOOPT;
}

static int get_option(struct rsock *rs, int level, int name, void *val,
		      socklen_t *len)
{
	uint64_t *timeout = timeout_of(&rs->opt, level, name);
	int *flag = flag_of(&rs->opt, level, name);
	uint32_t least, most;
	uint32_t *size = size_of(&rs->opt, level, name, &least, &most);

	if (timeout)
		return give_timeout(*timeout, val, len);
	if (flag == &rs->opt.v6only && rs->domain != AF_INET6)
		return ENOPROTOOPT;
	/* One message of the NIC, unless somebody asked for less. */
	if (flag == &rs->opt.maxseg && !*flag)
		return give_int(RS_MESSAGE_MAX, val, len);
	if (flag)
		return give_int(*flag, val, len);
	if (size)
		return give_int((int)*size, val, len);
	if (level == SOL_SOCKET)
		return get_state(rs, name, val, len);
	return level == SOL_RDMA ? EOPNOTSUPP : ENOPROTOOPT;
}

RS_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval,
			  socklen_t *optlen)
{
	struct rsock *rs = rs_get(socket);
	int err;

	if (!rs)
		return -1;
	err = optval && optlen ? get_option(rs, level, optname, optval, optlen)
			       : EFAULT;
	rs_leave(rs);
	return err ? rs_fail(err) : 0;
}

RS_EXPORT int rfcntl(int socket, int cmd, ...)
{
	struct rsock *rs = rs_get(socket);
	va_list args;
	int arg, ret = 0;

	if (!rs)
		return -1;
	va_start(args, cmd);
	switch (cmd) {
	case F_GETFL:
		ret = O_RDWR | (rs->nonblocking ? O_NONBLOCK : 0);
		break;
	case F_SETFL:
		rs->nonblocking = va_arg(args, int) & O_NONBLOCK;
		break;
	case F_GETFD:
		ret = fcntl(rs->fd, F_GETFD);
		break;
	case F_SETFD:
		arg = va_arg(args, int);
		ret = fcntl(rs->fd, F_SETFD, arg);
		break;
	default:
		ret = rs_fail(EINVAL);
		break;
	}
	va_end(args);
	rs_leave(rs);
	return ret;
}
