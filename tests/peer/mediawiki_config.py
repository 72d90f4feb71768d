"""Configuration of the wiki of `mediawiki.py`: MediaWiki, php-fpm and nginx."""

SETTINGS = """<?php
$wgSitename = 'Entries';
$wgServer = '%(server)s';
$wgScriptPath = '/w';
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgRCWatchCategoryMembership = true;
$wgSecretKey = 'known-to-everybody';
$wgLocaltimezone = 'UTC';

// One file per purpose, never flushed: the wiki is temporary.
$file = static fn ( $name ) => [
    'type' => 'sqlite', 'dbname' => $name, 'dbDirectory' => __DIR__ . '/data',
    'tablePrefix' => '', 'trxMode' => 'IMMEDIATE', 'flags' => 0,
    'variables' => [ 'synchronous' => 'OFF' ],
];
$wgDBtype = 'sqlite';
$wgDBname = 'wiki';
$wgSQLiteDataDir = __DIR__ . '/data';
$wgDBservers = [ $file( 'wiki' ) + [ 'load' => 1 ] ];
$wgObjectCaches[CACHE_DB] = [
    'class' => SqlBagOStuff::class, 'loggroup' => 'SQLBagOStuff', 'server' => $file( 'wikicache' ),
];
$wgJobTypeConf['default'] = [
    'class' => 'JobQueueDB', 'claimTTL' => 3600, 'server' => $file( 'wiki_jobqueue' ),
];
$wgCacheDirectory = __DIR__ . '/cache';
$wgLocalisationCacheConf['store'] = 'files';
$wgTmpDirectory = __DIR__ . '/tmp';
$wgMainCacheType = CACHE_NONE;
$wgSessionCacheType = CACHE_DB;
$wgParserCacheType = CACHE_DB;
$wgMessageCacheType = CACHE_NONE;

$wgJobRunRate = 0;
$wgEnableEmail = false;
$wgPingback = false;
$wgShowExceptionDetails = true;
$wgRCMaxAge = 40 * 365 * 86400;
$wgInvalidateCacheOnLocalSettingsChange = false;
$wgCacheEpoch = '20030516000000';
$wgGroupPermissions['*']['edit'] = false;
$wgEnableUploads = true;
$wgUploadDirectory = __DIR__ . '/images';
$wgUploadPath = '/w/images';
$wgGenerateThumbnailOnParse = false;
// A thumbnail is the file itself: the tests compare bytes, not pictures.
$wgCustomConvertCommand = 'cp %%s %%d';
wfLoadSkin( 'Vector' );

$wgReadOnlyFile = __DIR__ . '/control/readonly';
$wgHooks['ApiMaxLagInfo'][] = static function ( &$info ) {
    $lag = @file_get_contents( __DIR__ . '/control/lag' );
    if ( $lag !== false && (float)$lag > $info['lag'] ) {
        $info = [ 'host' => 'replica', 'lag' => (float)$lag, 'type' => 'db' ];
    }
};
"""

FPM = """
[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
{user}
listen = 127.0.0.1:{port}
listen.allowed_clients = 127.0.0.1
pm = static
pm.max_children = {workers}
catch_workers_output = yes
env[MW_INSTALL_PATH] = {source}
env[MW_CONFIG_FILE] = {folder}/LocalSettings.php
env[TMPDIR] = {folder}/tmp
"""

# Debian's parameter list uses $host, which lacks the port; $http_host has it.
FASTCGI = """
    fastcgi_param GATEWAY_INTERFACE CGI/1.1;
    fastcgi_param SERVER_PROTOCOL $server_protocol;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param REQUEST_SCHEME $scheme;
    fastcgi_param REQUEST_URI $request_uri;
    fastcgi_param QUERY_STRING $query_string;
    fastcgi_param CONTENT_TYPE $content_type;
    fastcgi_param CONTENT_LENGTH $content_length;
    fastcgi_param SERVER_NAME $host;
    fastcgi_param SERVER_ADDR $server_addr;
    fastcgi_param SERVER_PORT $server_port;
    fastcgi_param REMOTE_ADDR $remote_addr;
    fastcgi_param REMOTE_PORT $remote_port;
    fastcgi_param HTTP_HOST $http_host;
    fastcgi_param REDIRECT_STATUS 200;
    fastcgi_read_timeout 120s;
    fastcgi_pass 127.0.0.1:{port};
"""

CONTENT = """
  root {source};
  client_max_body_size 100m;
  location = / {{ return 301 /wiki/Main_Page; }}
  location = /robots.txt {{ root {folder}/control; default_type text/plain; }}
  location /sitemap/ {{ root {folder}/control; }}
  location /wiki/ {{
    fastcgi_param SCRIPT_FILENAME {source}/index.php;
    fastcgi_param SCRIPT_NAME /w/index.php;
    {fastcgi}
  }}
  location ~ ^/w/(?<script>(?:index|api|load|rest|opensearch_desc)\\.php)(?<info>/.*)?$ {{
    fastcgi_param SCRIPT_FILENAME {source}/$script;
    fastcgi_param SCRIPT_NAME /w/$script;
    fastcgi_param PATH_INFO $info;
    {fastcgi}
  }}
  location ~ ^/w/(?<static>(?:resources|skins|extensions)/.+\\.(?!php)[a-z0-9]+)$ {{
    alias {source}/$static;
  }}
  location /w/images/ {{ alias {folder}/images/; }}
  location /w/images/thumb/ {{ alias {folder}/images/thumb/; error_page 404 = @thumbnail; }}
  location @thumbnail {{
    fastcgi_param SCRIPT_FILENAME {source}/thumb_handler.php;
    fastcgi_param SCRIPT_NAME /w/thumb_handler.php;
    {fastcgi}
  }}
  location / {{ return 404; }}
"""
