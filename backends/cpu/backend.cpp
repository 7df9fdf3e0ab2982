// placeholder replaced by the back end
